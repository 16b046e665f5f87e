import { describe, expect, test } from "vitest";
import { filtersOf, isFiltered, manyOf, NO_FILTERS, queryOf, sameFilters, searchOf, statusesCounted } from "./filters";

describe("what stands in an address is read, whatever it is", () => {
  test.each([
    [{}, {}],
    [{ text: "night" }, { text: "night" }],
    [{ text: 2026 }, { text: "2026" }],
    [{ text: { evil: true } }, {}],
    [{ text: "a\u0000b" }, { text: "ab" }],
    [{ text: "x".repeat(500) }, { text: "x".repeat(200) }],
    [{ status: "paused" }, { status: "paused" }],
    [{ status: "asleep" }, {}],
    [{ status: "deleted" }, { status: "deleted" }],
    [{ health: "failing" }, { health: "failing" }],
    [{ health: "ok" }, {}],
    [{ label: "team=data" }, { label: ["team=data"] }],
    [{ label: ["team=data", "team=data", "no", 7, "tier="] }, { label: ["team=data", "tier="] }],
    [
      { label: Array.from({ length: 50 }, (_, at) => `l${at}=1`) },
      { label: Array.from({ length: 20 }, (_, at) => `l${at}=1`) },
    ],
    [
      { source: "template", owner: "ops", bundle: "b", workflow: "w", calendar: "holidays:DE", assignee: "desk" },
      { source: "template", owner: "ops", bundle: "b", workflow: "w", calendar: "holidays:DE", assignee: "desk" },
    ],
    [{ deleted: "yes" }, {}],
  ])("%j", (search, filters) => {
    expect(filtersOf(search)).toEqual({ ...NO_FILTERS, ...filters });
  });
});

const ALL = {
  text: "t",
  status: "paused",
  health: "late",
  label: ["a=b"],
  owner: "o",
  source: "runtime",
  workflow: "w",
  bundle: "b",
  calendar: "c",
  assignee: "a",
  deleted: true,
};

test("what is written to an address is read from it again", () => {
  expect(filtersOf(searchOf(ALL))).toEqual(ALL);
  expect(searchOf(NO_FILTERS)).toEqual({});
});

test("the service is asked in its own words", () => {
  expect(queryOf(NO_FILTERS)).toEqual({});
  expect(queryOf(ALL)).toEqual({
    text: "t",
    status: "paused",
    health: "late",
    label: ["a=b"],
    owner: "o",
    source: "runtime",
    workflow_id: "w",
    bundle: "b",
    calendar: "c",
    assignee: "a",
    include_deleted: true,
  });
});

test("whether anything filters", () => {
  expect([isFiltered(NO_FILTERS), isFiltered({ ...NO_FILTERS, deleted: true })]).toEqual([false, true]);
});

test("the order of labels makes no other view", () => {
  expect(sameFilters({ ...NO_FILTERS, label: ["a=1", "b=2"] }, { ...NO_FILTERS, label: ["b=2", "a=1"] })).toBe(true);
  expect(sameFilters(NO_FILTERS, { ...NO_FILTERS, text: "x" })).toBe(false);
});

describe("all that fit", () => {
  test.each([
    [{}, { kind: "filter", choice: "all" }],
    [{ deleted: true }, { kind: "filter", choice: "all" }],
    [
      { text: "t", status: "paused" },
      { kind: "filter", choice: { name_contains: "t", status: "paused" } },
    ],
    [{ label: ["a=b=c", "d="] }, { kind: "filter", choice: { labels: { a: "b=c", d: "" } } }],
    [
      { health: "failing", deleted: true },
      { kind: "listed", query: { health: "failing" } },
    ],
    [
      { owner: "o", text: "t" },
      { kind: "listed", query: { owner: "o", text: "t" } },
    ],
  ])("%j", (part, many) => {
    expect(manyOf({ ...NO_FILTERS, ...part })).toEqual(many);
  });
});

test.each([
  [{}, ["active", "paused", "broken", "finished"]],
  [{ status: "paused" }, ["paused"]],
  [{ status: "paused", text: "night" }, null],
  [{ deleted: true }, null],
  [{ status: "deleted" }, null],
])("of which the service has counted how many there are: %j", (search, statuses) => {
  expect(statusesCounted(filtersOf(search))).toEqual(statuses);
});
