import { describe, expect, test } from "vitest";
import { allToggled, hasAny, isAll, isChosen, NONE_CHOSEN, toggled, type Selection } from "./selection";

const ROWS = ["a", "b", "c", "d", "e"];
const chosen = (ids: string, anchor: string | null = null): Selection => ({
  ids: new Set(ids),
  everything: false,
  anchor,
});
const text = ({ ids }: Selection) => [...ids].sort().join("");

describe("toggled", () => {
  test.each([
    [chosen(""), "b", false, "b"],
    [chosen("b"), "b", false, ""],
    [chosen("b", "b"), "d", true, "bcd"],
    [chosen("d", "d"), "b", true, "bcd"],
    [chosen("abcde", "b"), "d", true, "ae"],
    [chosen("b"), "d", true, "bd"], // a range without a beginning
    [chosen("b", "gone"), "d", true, "bd"],
    [{ ids: new Set<string>(), everything: true, anchor: null }, "c", false, "abde"],
  ])("%#", (before, id, range, after) => {
    const found = toggled(before, ROWS, id, range);
    expect([text(found), found.everything, found.anchor]).toEqual([after, false, id]);
  });
});

test("all that are loaded, and none again", () => {
  const all = allToggled(NONE_CHOSEN, ROWS);
  expect([text(all), isAll(all, ROWS)]).toEqual(["abcde", true]);
  expect(hasAny(allToggled(all, ROWS))).toBe(false);
  expect(isAll(NONE_CHOSEN, [])).toBe(false);
});

test("everything holds also those that come later", () => {
  expect(isChosen({ ...NONE_CHOSEN, everything: true }, "z")).toBe(true);
});
