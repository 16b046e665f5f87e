import { expect, test } from "vitest";
import { countOf } from "./Counts";

test.each([
  [0, false, "0"],
  [1_200, false, "1,200"],
  [5_000, true, "5,000+"],
  [0, true, "?"],
])("%i, bounded %s, is shown as %s", (many, isMore, text) => {
  expect(countOf(many, isMore)).toBe(text);
});
