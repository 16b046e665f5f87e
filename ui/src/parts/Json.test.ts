import { expect, test } from "vitest";
import { diffLines, folded, jsonText, shownText } from "./Json";

test.each([
  ["a\nb", "a\nb", ["same a", "same b"]],
  ["a\nb\nc", "a\nc", ["same a", "removed b", "same c"]],
  ["a", "b", ["removed a", "added b"]],
  ["a\nc", "a\nb\nc", ["same a", "added b", "same c"]],
])("from %j to %j", (before, after, lines) => {
  expect(diffLines(before, after).map(([kind, text]) => `${kind} ${text}`)).toEqual(lines);
});

const LARGE = Array.from({ length: 60_000 }, (_, index) => index);

test("what is edited is whole, what is shown has an end", () => {
  expect(JSON.parse(jsonText(LARGE))).toEqual(LARGE);
  expect(shownText(LARGE)).toMatch(/\n… \d+ more characters$/);
  expect(shownText("x".repeat(2_000_000)).length).toBeLessThan(201_000);
  expect(shownText("a text")).toBe("a text");
  expect(jsonText(undefined)).toBe("null");
});

test("a long document shows the changed lines with their context", () => {
  const changed = LARGE.with(40_000, -1);
  expect(folded(diffLines(jsonText(LARGE), jsonText(changed))).map(([kind, text]) => `${kind} ${text.trim()}`)).toEqual(
    [
      "left out … 39998 unchanged lines",
      "same 39997,",
      "same 39998,",
      "same 39999,",
      "removed 40000,",
      "added -1,",
      "same 40001,",
      "same 40002,",
      "same 40003,",
      "left out … 19997 unchanged lines",
    ],
  );
  expect(folded(diffLines("a\nb\nc\nd\nx", "a\nb\nc\nd\ny"))[0]).toEqual(["same", "a"]);
});

test("a diff of large documents has a bounded number of lines, and says so", () => {
  const lines = diffLines(jsonText(LARGE), jsonText(LARGE.map((each) => each + 1)));
  expect(lines.length).toBe(4_004);
  expect(lines.at(-2)).toEqual(["added", "… 58000 more lines"]);
});
