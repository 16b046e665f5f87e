import { expect, test } from "vitest";
import { chainOf, countOf, filtersOf, isFiltered, leadOf, subjectOf, type Chain, type Lead } from "./audit";

const link = (sequence: number) => ({ sequence, hash: "0" });
const page = (head: number | null, sequences: number[], begin = 0) => ({
  head: head === null ? null : link(head),
  begin: link(begin),
  entries: sequences.map((sequence) => ({ sequence })),
});

test.each<[string, ReturnType<typeof page>[], boolean, Chain]>([
  ["nothing asked yet", [], false, { kind: "empty" }],
  ["nothing written", [page(null, [])], false, { kind: "empty" }],
  ["all of it", [page(3, [3, 2, 1])], false, { kind: "whole", first: 1, last: 3, toBegin: true }],
  ["the newest of it", [page(9, [9, 8]), page(9, [7])], false, { kind: "whole", first: 7, last: 9, toBegin: false }],
  ["the oldest were cleaned away", [page(9, [9, 8], 7)], false, { kind: "whole", first: 8, last: 9, toBegin: true }],
  ["one is missing", [page(4, [4, 2, 1])], false, { kind: "gap", after: 2 }],
  ["the last are missing", [page(9, [4, 3])], false, { kind: "gap", after: 4 }],
  ["the head is gone", [page(null, [2, 1])], false, { kind: "head_gone" }],
  ["a filter leaves gaps on purpose", [page(9, [7, 2])], true, { kind: "filtered", head: 9 }],
])("the chain: %s", (_, pages, filtered, found) => {
  expect(chainOf(pages, filtered)).toEqual(found);
});

test.each<[Record<string, unknown>, string | null, number]>([
  [{ schedule_id: "a", name: "b" }, "a", 1],
  [{ token_id: "t", role: "viewer" }, "t", 1],
  [{ token_id: "t", name: "ci" }, "ci", 1],
  [{ id: "writer", name: "The writer" }, "writer", 1],
  [{ role: "viewer", some_new_id: "n" }, "n", 1],
  [{ count: 12 }, null, 12],
  [{ count: "many", schedule_id: 5 }, null, 1],
  [{ name: "x".repeat(500) }, `${"x".repeat(120)}…`, 1],
  [{}, null, 1],
])("what %j is about", (detail, subject, count) => {
  expect([subjectOf({ detail }), countOf({ detail })]).toEqual([subject, count]);
});

test("filters are read from any URL", () => {
  expect(filtersOf({ act: "issue_token", principal: 7, since: { a: 1 }, until: "  ", other: "x" })).toEqual({
    act: "issue_token",
    principal: "7",
  });
  expect(isFiltered(filtersOf({ namespace: "a" }))).toBe(false);
  expect(isFiltered(filtersOf({ until: "2026-01-01T00:00:00Z" }))).toBe(true);
});

test.each<[act: string, detail: object, lead: Lead | null]>([
  [
    "patch_schedule",
    { schedule_id: "s", owner: "bob", revision: 3 },
    { to: "/schedules/$scheduleId", params: { scheduleId: "s" }, search: { tab: "definition", before: 2, after: 3 } },
  ],
  ["create_schedule", { schedule_id: "s", revision: 1 }, { to: "/schedules/$scheduleId", params: { scheduleId: "s" } }],
  ["delete_schedule", { schedule_id: "s" }, { to: "/schedules/$scheduleId", params: { scheduleId: "s" } }],
  [
    "put_workflow",
    { workflow_id: "w", version: 2 },
    { to: "/workflows/$workflowId", params: { workflowId: "w" }, search: { version: 2, against: 1 } },
  ],
  ["delete_workflow", { workflow_id: "w" }, null],
  ["update_calendar", { name: "c" }, { to: "/calendars/$name", params: { name: "c" } }],
  ["clone_calendar", { name: "c", new_name: "d" }, { to: "/calendars/$name", params: { name: "d" } }],
  ["delete_calendar", { name: "c" }, null],
  ["issue_token", { token_id: "t", name: "ci" }, null],
])("%s of %j leads to %j", (act, detail, lead) => expect(leadOf({ act, detail })).toEqual(lead));
