import { expect, test } from "vitest";
import { freshKey, wishOf } from "./wishKey";

test("the same wish keeps its key, another one gets its own", () => {
  let made = 0;
  const fresh = () => `key-${++made}`;
  const first = wishOf(null, { path: { run_id: "a" }, body: { reason: "x" } }, fresh);
  expect(first.key).toBe("key-1");
  expect(wishOf(first, { path: { run_id: "a" }, body: { reason: "x" } }, fresh)).toBe(first);
  expect(wishOf(first, { path: { run_id: "a" }, body: { reason: "y" } }, fresh).key).toBe("key-2");
  expect(wishOf(first, { path: { run_id: "b" }, body: { reason: "x" } }, fresh).key).toBe("key-3");
});

test("a key is unique", () => {
  expect(freshKey()).toMatch(/^[0-9a-f]{32}$/);
  expect(freshKey()).not.toBe(freshKey());
});
