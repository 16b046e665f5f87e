import { expect, test } from "vitest";
import { keyed, wheeled } from "./usePanZoom";

const HOUR = 3_600_000;
const SPAN = { from: 0, to: 10 * HOUR };
const BOX = { left: 100, width: 1_000 };
const still = { deltaX: 0, deltaY: 0, ctrlKey: false, clientX: 600 };
const key = (name: string, more: object = {}) => ({
  key: name,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
});

test.each([
  ["ArrowRight", { from: 1.5 * HOUR, to: 11.5 * HOUR }],
  ["ArrowLeft", { from: -1.5 * HOUR, to: 8.5 * HOUR }],
  ["+", { from: 2.5 * HOUR, to: 7.5 * HOUR }],
  ["-", { from: -5 * HOUR, to: 15 * HOUR }],
  ["x", null],
])("the key %s", (name, span) => {
  expect(keyed(key(name), SPAN)).toEqual(span);
});

test("keys of the browser stay the browser's", () => {
  expect(keyed(key("+", { ctrlKey: true }), SPAN)).toBe(null);
});

test("the wheel scrolls the page, unless it is turned sideways or with Ctrl", () => {
  expect(wheeled({ ...still, deltaY: 100 }, BOX, SPAN)).toBe(null);
  expect(wheeled({ ...still, deltaX: 100, deltaY: 10 }, BOX, SPAN)).toEqual({ from: HOUR, to: 11 * HOUR });
  const nearer = wheeled({ ...still, deltaY: -50, ctrlKey: true }, BOX, SPAN)!;
  expect(nearer.to - nearer.from).toBeLessThan(10 * HOUR);
  expect((nearer.from + nearer.to) / 2).toBeCloseTo(5 * HOUR, -1); // what is under the pointer stays there
});
