import { expect, test } from "vitest";
import { hiddenOf, withHidden } from "./visibility";

test.each([
  [null, ["owner"]],
  ["", []],
  ["labels,next", ["next", "labels"]],
  ["name,menu,evil", []],
])("kept %j", (kept, hidden) => {
  expect(hiddenOf(kept)).toEqual(hidden);
});

test("one is hidden, and shown again", () => {
  expect(withHidden(["owner"], "next", true)).toEqual(["next", "owner"]);
  expect(withHidden(["next", "owner"], "owner", false)).toEqual(["next"]);
});
