import { describe, expect, it } from "vitest";
import { counted } from "./counted";
import { choiceOf, filtersOf, isFiltered, queryOf, searchOf, STATE_CHOICES, type RunFilters } from "./filters";
import {
  assigneeText,
  attemptOf,
  latenessOf,
  mergedRows,
  secondaryId,
  seenRows,
  titleOf,
  usageTexts,
  workerText,
  workflowText,
  type RunRow,
} from "./rows";

const NONE: RunFilters = {
  state: "",
  origin: "",
  schedule: "",
  workflow: "",
  assignee: "",
  queue: "",
  since: "",
  steps: false,
  all: false,
};

describe("filtersOf", () => {
  it.each<[name: string, search: Record<string, unknown>, filters: Partial<RunFilters>]>([
    ["nothing", {}, {}],
    ["a state", { state: "failed" }, { state: "failed" }],
    ["a group", { state: "open" }, { state: "open" }],
    ["a state that there is not", { state: "<img>" }, {}],
    ["the name of an object's own", { state: "__proto__", origin: "constructor" }, {}],
    ["lists and objects", { state: ["failed"], schedule: { a: 1 }, queue: null }, {}],
    ["a number is an id, too", { schedule: 42 }, { schedule: "42" }],
    ["a text without end", { workflow: "x".repeat(9_999) }, { workflow: "x".repeat(500) }],
    ["steps", { steps: "true" }, { steps: true }],
  ])("%s", (_, search, filters) => {
    expect(filtersOf(search)).toEqual({ ...NONE, ...filters });
  });

  it("comes back from the address as it went there", () => {
    const filters = { ...NONE, state: "unsuccessful", queue: "q", steps: true };
    expect(filtersOf(searchOf(filters))).toEqual(filters);
    expect(isFiltered(filters)).toBe(true);
    expect(isFiltered(filtersOf({}))).toBe(false);
  });

  it("says each choice of a state in states", () => {
    for (const [value] of STATE_CHOICES.slice(1))
      expect(queryOf({ ...NONE, state: value }).state?.length).toBeGreaterThan(0);
    expect(queryOf({ ...NONE, state: "unsuccessful" }).state).toEqual(["unsuccessful"]);
    expect(queryOf(NONE)).toEqual({});
    expect(queryOf({ ...NONE, all: true })).toEqual({ namespace: "*" });
    expect(choiceOf({ ...NONE, schedule: "s", all: true })).toBeNull();
  });
});

const row = (run_id: string, state = "running"): RunRow => ({ run_id, state }) as RunRow;
const ids = (rows: readonly RunRow[]) => rows.map((each) => each.run_id).join("");

describe("mergedRows", () => {
  it.each<[name: string, shown: string, asked: string, isAll: boolean, rows: string]>([
    ["the first answer", "", "dcb", false, "dcb"],
    ["new ones push old ones out of the answer, not out of sight", "dcba", "fedc", false, "fedcba"],
    ["what is gone between is gone", "dcba", "db", false, "dba"],
    ["the answer is all there is", "dcba", "fe", true, "fe"],
    ["nothing is left", "dcba", "", true, ""],
  ])("%s", (_, shown, asked, isAll, rows) => {
    expect(
      ids(
        mergedRows(
          [...shown].map((id) => row(id)),
          [...asked].map((id) => row(id)),
          isAll,
        ),
      ),
    ).toBe(rows);
  });

  it("takes the newer state", () => {
    expect(mergedRows([row("a")], [row("a", "succeeded")], false)[0]!.state).toBe("succeeded");
  });
});

describe("seenRows", () => {
  it.each<[top: string | null, rows: string, fresh: number]>([
    [null, "cba", 0],
    ["c", "cba", 0],
    ["b", "ba", 1],
    ["", "", 3],
  ])("%s", (top, rows, fresh) => {
    const seen = seenRows(
      [..."cba"].map((id) => row(id)),
      top,
    );
    expect([ids(seen.rows), seen.fresh]).toEqual([rows, fresh]);
  });
});

describe("one row", () => {
  it.each<[due: string | null, started_at: string | null, seconds: number | null]>([
    ["2026-03-01T02:00:00Z", "2026-03-01T02:00:03.5Z", 3.5],
    ["2026-03-01T02:00:00Z", "2026-03-01T01:59:59Z", 0],
    ["2026-03-01T02:00:00Z", null, null],
    [null, "2026-03-01T02:00:00Z", null],
  ])("%s started %s has a delay of %s", (due, started_at, seconds) => {
    expect(latenessOf({ due, started_at })).toBe(seconds);
  });

  it.each([
    [{ cost: 0, tokens: 0, tool_calls: 0 }, []],
    [{ cost: "1.25", tokens: 12_400, tool_calls: 1 }, ["cost 1.25", "12,400 tokens", "1 tool call"]],
  ])("%j was used", (usage, texts) => {
    expect(usageTexts(usage)).toEqual(texts);
  });

  it.each<[state: RunRow["state"], attempt: number, number: number]>([
    ["running", 0, 1],
    ["succeeded", 1, 2],
    ["failed", 2, 2],
    ["timed_out", 1, 1],
    ["failed", 0, 1],
    ["cancelled", 1, 2],
  ])("%s after %i failures is attempt %i", (state, attempt, number) => {
    expect(attemptOf({ state, attempt })).toBe(number);
  });

  it.each([
    [{ schedule_id: "nightly" }, "nightly"],
    [{ schedule_id: "nightly", schedule_name: "Nightly report", node_id: "send" }, "Nightly report · send"],
    [{ workflow: { workflow_id: "brief", version: 2, name: "The brief" } }, "The brief"],
    [{ workflow: { workflow_id: "brief", version: 2 } }, "brief"],
    [{ schedule_id: "nightly", node_id: "send" }, "nightly · send"],
    [{ kind: "http" }, "http"],
    [{}, "run"],
  ])("%j is called %s", (given, title) => {
    const nothing = { schedule_id: null, workflow: null, workflow_type: null, node_id: null, kind: null };
    expect(titleOf({ ...nothing, ...given })).toBe(title);
  });
});

describe("names", () => {
  it.each([
    [{ schedule_id: "nightly", schedule_name: "Nightly report" }, "nightly"],
    [{ schedule_id: "nightly" }, null],
    [{ schedule_id: "nightly", schedule_name: "nightly" }, null],
    [{ schedule_id: null }, null],
  ])("%j has the secondary id %s", (given, id) => {
    expect(secondaryId(given)).toBe(id);
  });

  it("stand before ids", () => {
    expect(workflowText({ workflow_id: "brief", version: 2, name: "The brief" })).toBe("The brief v2");
    expect(workflowText({ workflow_id: "brief", version: 2 })).toBe("brief v2");
    expect(assigneeText({ type: "agent", id: "writer", name: "The writer", member: null })).toBe("agent The writer");
    const desk = { type: "team", id: "desk", member: "writer", member_name: "The writer" } as const;
    expect(assigneeText(desk)).toBe("team desk (The writer)");
    expect(workerText(desk)).toBe("The writer");
    expect(workerText({ type: "agent", id: "writer" })).toBe("writer");
  });
});

describe("choiceOf", () => {
  it.each<[name: string, filters: Partial<RunFilters>, filter: object | null]>([
    ["nothing is narrowed down", {}, null],
    ["a schedule", { schedule: "a" }, { schedule_ids: ["a"] }],
    ["its running ones", { schedule: "a", state: "running" }, { schedule_ids: ["a"], states: ["running"] }],
    ["what has ended cannot be stopped", { schedule: "a", state: "bad" }, null],
    ["the service cannot choose by queue", { schedule: "a", queue: "q" }, null],
  ])("%s", (_, filters, filter) => {
    expect(choiceOf({ ...NONE, ...filters })?.filter ?? null).toEqual(filter);
  });
});

describe("counted", () => {
  it.each<[words: string[], counts: [string, number][]]>([
    [[], []],
    [
      ["b", "a", "b"],
      [
        ["b", 2],
        ["a", 1],
      ],
    ],
    [
      ["b", "a"],
      [
        ["a", 1],
        ["b", 1],
      ],
    ],
  ])("%j", (words, counts) => {
    expect(counted(words)).toEqual(counts);
  });
});
