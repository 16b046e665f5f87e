import { expect, test } from "vitest";
import { groupMarks, runBars, wordsOf, type Row } from "./groups";

const FROM = Date.parse("2026-11-16T00:00:00Z");
const HOUR = 3_600_000;
const SPAN = { from: FROM, to: FROM + 10 * HOUR }; // 1,000 pixels: 36 s each

function row(minute: number, more: Partial<Row> = {}): Row {
  return {
    schedule_id: "a",
    at: new Date(FROM + minute * 60_000).toISOString(),
    decision: "dispatch",
    reason: null,
    predicted: false,
    state: "succeeded",
    run_id: null,
    count: 1,
    ...more,
  } as Row;
}
const at = (minute: number) => new Date(FROM + minute * 60_000).toISOString();
const coming = (minute: number, more: Partial<Row> = {}) => row(minute, { predicted: true, state: null, ...more });

test.each<[string, Row[], [number, string, string][]]>([
  ["nothing", [], []],
  [
    "marks that have room stay alone, in the middle of their moment",
    [row(0), row(60), row(120)],
    [
      [-6.5, "Succeeded", "Succeeded"],
      [93.5, "Succeeded", "Succeeded"],
      [193.5, "Succeeded", "Succeeded"],
    ],
  ],
  [
    "marks that would touch become one, which ends with the last of them",
    [row(60), row(61), row(62), row(120)],
    [
      [62 / 0.6 + 6.5 - 31, "Succeeded", "3 succeeded"],
      [193.5, "Succeeded", "Succeeded"],
    ],
  ],
  [
    "what is predicted begins with the first of them",
    [coming(60), coming(61), coming(120)],
    [
      [93.5, "Scheduled", "2 scheduled"],
      [193.5, "Scheduled", "Scheduled"],
    ],
  ],
  [
    "only a running run from before the view is placed at its edge",
    [
      row(-200, { state: "running", started_at: at(-200), finished_at: null }),
      row(-100, { started_at: at(-100), finished_at: at(-90) }),
    ],
    [[0, "Running", "Running"]],
  ],
  [
    "the worst wins",
    [row(60, { state: "failed" }), row(61), row(62, { state: "running" })],
    [[62 / 0.6 + 6.5 - 31, "Failed", "3: 1 failed, 1 running, 1 succeeded"]],
  ],
  [
    "a run is more than a skip",
    [row(60, { state: null, decision: "skip", reason: "calendar" }), row(60.1)],
    [[60.1 / 0.6 + 6.5 - 31, "Succeeded", "2: 1 succeeded, 1 skipped"]],
  ],
  [
    "what was decided makes room for what is predicted",
    [row(60), coming(61), coming(62)],
    [
      [61 / 0.6 - 6.5 - 13, "Succeeded", "Succeeded"],
      [61 / 0.6 - 6.5, "Scheduled", "2 scheduled"],
    ],
  ],
  [
    "what is late and undecided does not hide what was decided since",
    [coming(60), row(120)],
    [
      [93.5, "Scheduled", "Scheduled"],
      [193.5, "Succeeded", "Succeeded"],
    ],
  ],
  [
    "a row of missed ones counts all of them",
    [row(60, { state: null, decision: "skip", reason: "missed", count: 500 })],
    [[100 + 6.5 - 45, "Missed", "500 missed"]],
  ],
  ["what is out of sight is left out", [row(-120), row(60), row(1_000)], [[93.5, "Succeeded", "Succeeded"]]],
])("%s", (_, rows, shown) => {
  const found = groupMarks(rows, SPAN, 1_000).map((each) => [round(each.x), each.look.word, wordsOf(each)]);
  expect(found).toEqual(shown.map(([x, ...words]) => [round(x), ...words]));
});

function round(x: number): number {
  return Math.round(x * 100) / 100;
}

test("a dense day becomes a row of numbers that do not overlap", () => {
  const rows = Array.from({ length: 5_000 }, (_, index) =>
    row(index * 0.12, index === 2_500 ? { state: "failed" } : {}),
  );
  const groups = groupMarks(rows, SPAN, 1_000);
  expect(groups.length).toBeLessThan(40);
  expect(groups.reduce((sum, each) => sum + each.count, 0)).toBe(5_000);
  expect(groups.filter((each) => each.look.word === "Failed")).toHaveLength(1);
  for (const [index, each] of groups.slice(1).entries())
    expect(each.x).toBeGreaterThanOrEqual(groups[index]!.x + groups[index]!.width - 1e-6);
});

test("the hour that comes twice when the clock is put back is two hours of room", () => {
  const [before, after] = [Date.parse("2026-10-25T00:30:00Z"), Date.parse("2026-10-25T01:30:00Z")]; // both 02:30 in Berlin
  const span = { from: before - HOUR, to: before + 9 * HOUR };
  const rows = [before, after].map((at) => row(0, { at: new Date(at).toISOString() }));
  expect(groupMarks(rows, span, 1_000).map((each) => each.x)).toEqual([93.5, 193.5]);
});

test.each<[string, Row, [number, number][]]>([
  ["a short run has no bar", row(60, { started_at: "2026-11-16T01:00:00Z", finished_at: "2026-11-16T01:01:00Z" }), []],
  [
    "a long one lasts from start to end",
    row(60, { started_at: "2026-11-16T01:00:00Z", finished_at: "2026-11-16T02:00:00Z" }),
    [[100, 100]],
  ],
  [
    "a running run ends at now",
    row(60, { state: "running", started_at: "2026-11-16T01:00:00Z", finished_at: null }),
    [[100, 400]],
  ],
  [
    "one that began before the view begins at its edge",
    row(-600, { started_at: "2026-11-15T14:00:00Z", finished_at: "2026-11-16T01:00:00Z" }),
    [[-2, 102]],
  ],
  ["one that never started has none", row(60, { state: "ready", started_at: null }), []],
])("%s", (_, run, bars) => {
  expect(runBars([run], SPAN, 1_000, FROM + 5 * HOUR).map((each) => [each.x, each.width])).toEqual(bars);
});
