import { expect, test } from "vitest";
import type { Row } from "./groups";
import type { Schemas } from "../../api/client";
import { NOTHING, type Counts } from "./laneBars";
import { arranged, attentionOf, joined, lanesOf, type Lane, type SentLane } from "./lanes";

function row(minute: number, more: Partial<Row> = {}): Row {
  const at = `2026-11-16T09:${String(minute).padStart(2, "0")}:00Z`;
  return {
    schedule_id: "a",
    at,
    decision: "dispatch",
    reason: null,
    predicted: false,
    state: "succeeded",
    run_id: null,
    count: 1,
    ...more,
  } as Row;
}
const failed = (minute: number) => row(minute, { state: "failed" });
const missed = (minute: number) => row(minute, { state: null, decision: "skip", reason: "missed" });
const coming = (minute: number, id = "a") => row(minute, { predicted: true, state: null, schedule_id: id });

test.each<[string, Row[], number]>([
  ["nothing decided", [coming(5)], 3],
  ["all went well", [row(1), row(2)], 3],
  ["the last one failed", [row(1), failed(2)], 0],
  ["the last one failed, the next is under way", [failed(2), row(3, { state: "running" })], 0],
  ["one failed and was made good", [failed(1), row(2)], 2],
  ["a run awaits approval", [row(1), row(2, { state: "awaiting_approval" })], 1],
  ["the last was missed", [row(1), missed(2)], 1],
  ["one was missed earlier", [missed(1), row(2)], 2],
  ["a skip needs no attention", [row(1), row(2, { state: null, decision: "skip", reason: "calendar" })], 3],
])("%s", (_, rows, attention) => {
  expect(attentionOf(rows)).toBe(attention);
});

test("rows become lanes, with what is known of their schedules", () => {
  const rows = [row(1, { schedule_id: "b" }), coming(5), coming(7, "b"), coming(9)];
  const lanes = lanesOf(rows, { a: { timezone: "Europe/Berlin", status: "active", name: "Alpha" } });
  expect(lanes.map(({ id, zone, name, next, rows: own }) => [id, zone, name, next, own.length])).toEqual([
    ["b", null, null, "2026-11-16T09:07:00Z", 2],
    ["a", "Europe/Berlin", "Alpha", "2026-11-16T09:05:00Z", 2],
  ]);
});

test("lanes of the same name show their ids", () => {
  const about = (name: string) => ({ name, timezone: "UTC", status: "active" as const });
  const lanes = lanesOf([coming(1, "a"), coming(2, "b"), coming(3, "c"), coming(4, "d")], {
    a: about("Look"),
    b: about("Look"),
    c: about("Other"),
    d: about(""),
  });
  expect(lanes.map((each) => each.title)).toEqual(["a", "b", "Other", "d"]);
});

test("a schedule named like a property of all objects is a schedule like any other", () => {
  expect(lanesOf([coming(1, "constructor"), coming(2, "__proto__")]).map((lane) => [lane.id, lane.zone])).toEqual([
    ["constructor", null],
    ["__proto__", null],
  ]);
});

const lane = (id: string, attention: Lane["attention"], next: string | null): Lane => ({
  id,
  attention,
  next,
  rows: [],
  buckets: null,
  zone: null,
  name: null,
  title: id,
});

test("lanes that need attention first, then by next fire", () => {
  const lanes = [
    lane("d", 3, null),
    lane("c", 3, "2026-02"),
    lane("b", 3, "2026-01"),
    lane("a", 0, null),
    lane("e", 3, "2026-01"),
  ];
  expect(arranged(lanes, new Map()).map((each) => each.id)).toEqual(["a", "b", "e", "c", "d"]);
});

test("the order that was shown stays, except for those that came into need; new ones stand behind", () => {
  const before = new Map([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
  const lanes = [lane("c", 0, "2026-09"), lane("b", 3, "2026-01"), lane("a", 3, "2026-05"), lane("n", 3, "2026-01")];
  expect(arranged(lanes, before).map((each) => each.id)).toEqual(["c", "a", "b", "n"]);
});

test("answers about neighbouring hours are joined without telling anything twice", () => {
  const early = [row(1), coming(3)];
  const late = [failed(3), row(5)];
  expect(joined([early, late]).map((each) => [each.at.slice(14, 16), each.state])).toEqual([
    ["01", "succeeded"],
    ["03", "failed"],
    ["05", "succeeded"],
  ]);
});

test("a row that leaves out its count stands for one", () => {
  const { count: _, ...sent } = row(1);
  expect(joined([[sent]]).map((each) => each.count)).toEqual([1]);
});

const DENSE = (buckets: Schemas["LaneBucket"][]): SentLane => ({
  schedule_id: "a",
  name: "",
  rows_complete: false,
  buckets,
});
const bucket = (minute: number, counts: Partial<Counts>) => ({ at: row(minute).at, ...NOTHING, ...counts });

test.each<[string, Schemas["LaneBucket"][], number]>([
  ["all went well", [bucket(1, { dispatched: 60 })], 3],
  ["a few failed", [bucket(1, { dispatched: 60, failed: 2 })], 2],
  ["all of the last ones failed", [bucket(1, { dispatched: 60 }), bucket(2, { dispatched: 60, failed: 60 })], 0],
  ["the last were missed", [bucket(1, { dispatched: 60 }), bucket(2, { missed: 60 })], 1],
  ["some were missed before", [bucket(1, { missed: 60 }), bucket(2, { dispatched: 60 })], 2],
])("of a dense schedule the counts tell: %s", (_, buckets, attention) => {
  const coming = bucket(9, { dispatched: 60, skipped: 1 });
  const [found] = lanesOf([], {}, [DENSE([...buckets, coming])], Date.parse(row(5).at));
  expect(found).toMatchObject({ attention, next: coming.at, rows: [], buckets: [...buckets, coming] });
});

test("a schedule without anything in the view has no lane, and dense ones hide no others", () => {
  const quiet: SentLane = { schedule_id: "q", name: "", rows_complete: true, buckets: [] };
  const dense = DENSE([bucket(1, { dispatched: 60 })]);
  const lanes = lanesOf([coming(5, "b")], {}, [dense, quiet], 0);
  expect(lanes.map((each) => [each.id, each.buckets === null])).toEqual([
    ["b", true],
    ["a", false],
  ]);
});
