import { expect, test } from "vitest";
import { pointedAt, searchOf, spanOf, viewFor, viewOf, zoomedTo, type View } from "./span";

const HOUR = 3_600_000;
const NOW = Date.parse("2026-11-16T12:00:00Z");

test.each<[Record<string, unknown>, View]>([
  [{}, { hours: 12, from: null, share: 0.4 }],
  [
    { hours: 3, share: 0.5 },
    { hours: 3, from: null, share: 0.5 },
  ],
  [{ hours: "24" }, { hours: 24, from: null, share: 0.4 }],
  [
    { from: "2026-11-16T00:00:00Z", hours: 6 },
    { hours: 6, from: NOW - 12 * HOUR, share: 0.4 },
  ],
  [
    { hours: 1e9, share: 7 },
    { hours: 168, from: null, share: 1 },
  ],
  [
    { hours: -3, share: "x", from: "tomorrow" },
    { hours: 12, from: null, share: 0.4 },
  ],
  [
    { hours: { a: 1 }, from: ["2026"], share: "" },
    { hours: 12, from: null, share: 0.4 },
  ],
  [
    { hours: NaN, from: "+275760-09-13T00:00:00Z" },
    { hours: 12, from: null, share: 0.4 },
  ],
])("the address %j shows %j", (search, view) => {
  expect(viewOf(search)).toEqual(view);
});

test.each<[View]>([
  [{ hours: 12, from: null, share: 0.4 }],
  [{ hours: 0.5, from: null, share: 0.25 }],
  [{ hours: 72, from: NOW, share: 0.4 }],
])("the view %j comes back from its address", (view) => {
  expect(viewOf(searchOf(view))).toEqual(view);
});

test("a view without a beginning moves with the clock, one with a beginning does not", () => {
  const following = { hours: 10, from: null, share: 0.4 };
  expect(spanOf(following, NOW)).toEqual({ from: NOW - 4 * HOUR, to: NOW + 6 * HOUR });
  expect(spanOf(following, NOW + HOUR)).toEqual({ from: NOW - 3 * HOUR, to: NOW + 7 * HOUR });
  expect(spanOf({ ...following, from: NOW }, NOW + HOUR)).toEqual({ from: NOW, to: NOW + 10 * HOUR });
});

test("a view without now is fixed, and a view with now follows it", () => {
  expect(viewFor({ from: NOW - HOUR, to: NOW + 3 * HOUR }, NOW)).toEqual({ hours: 4, from: null, share: 0.25 });
  expect(viewFor({ from: NOW + HOUR, to: NOW + 3 * HOUR }, NOW)).toEqual({ hours: 2, from: NOW + HOUR, share: 0.4 });
});

test("a zoom keeps the middle of a view that stands still", () => {
  const view = { hours: 4, from: NOW + 10 * HOUR, share: 0.4 };
  expect(zoomedTo(view, 2, NOW)).toEqual({ hours: 2, from: NOW + 11 * HOUR, share: 0.4 });
  expect(zoomedTo({ hours: 4, from: null, share: 0.3 }, 1_000, NOW)).toEqual({ hours: 168, from: null, share: 0.3 });
});

test.each([
  [0, NOW],
  [50, NOW + 6 * HOUR],
  [33.3333, NOW + 4 * HOUR],
])("pointing at %d of 100", (x, at) => {
  expect(pointedAt(x, 100, { from: NOW, to: NOW + 12 * HOUR })).toBe(at);
});

test("pointing is to the second where a pixel is seconds", () => {
  expect(pointedAt(1, 600, { from: NOW, to: NOW + HOUR / 12 })).toBe(NOW + 1_000);
});
