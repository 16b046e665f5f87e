import { expect, test } from "vitest";
import { diffLines, jsonText, shownText } from "./Json";

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
  expect(shownText(LARGE)).toMatch(/\n… \d+ characters more$/);
  expect(shownText("x".repeat(2_000_000)).length).toBeLessThan(201_000);
  expect(shownText("a text")).toBe("a text");
  expect(jsonText(undefined)).toBe("null");
});

test("a diff of large documents has a bounded number of lines, and says so", () => {
  const lines = diffLines(jsonText(LARGE), jsonText(LARGE.map((each) => each + 1)));
  expect(lines.length).toBe(4_002);
  expect(lines.at(-1)).toEqual(["added", "… 58002 lines more"]);
});
