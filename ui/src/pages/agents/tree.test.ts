import { expect, test } from "vitest";
import { leadOf, treeRows } from "./tree";

const agent = (id: string, parent_id: string | null = null) => ({ id, name: "", parent_id });
const drawn = (...agents: ReturnType<typeof agent>[]) =>
  treeRows(agents).map((row) => "  ".repeat(row.depth) + row.agent.id);

test("children stand below their parents", () => {
  expect(drawn(agent("b", "a"), agent("c", "b"), agent("a"), agent("d"))).toEqual(["a", "  b", "    c", "d"]);
});

test("an agent whose parent is not there stands at the top", () => {
  expect(drawn(agent("b", "gone"), agent("a"))).toEqual(["a", "b"]);
});

test("a circle is shown once, whatever the data says", () => {
  expect(drawn(agent("a", "b"), agent("b", "a"))).toEqual(["a", "  b"]);
});

test.each([
  ["lead", "b", "b"],
  ["lead", null, "a"],
  ["round_robin", null, null],
] as const)("of a team that works by %s, with the lead %s, %s leads", (strategy, lead, found) => {
  expect(leadOf({ strategy, lead, members: ["a", "b"] })).toBe(found);
});
