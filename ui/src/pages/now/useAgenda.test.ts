import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { fleetOf, nearStart } from "./useAgenda";

const HOUR = 3_600_000;
const at = (hours: number) => new Date(hours * HOUR).toISOString();
const row = (hours: number, id = "a"): Schemas["AgendaRow"] => ({
  schedule_id: id,
  at: at(hours),
  decision: "dispatch",
  reason: null,
  predicted: false,
});
const part = (from: number, to: number, rows: Schemas["AgendaRow"][], truncated = false): Schemas["Agenda"] => ({
  namespace: "default",
  start: at(from),
  end: at(to),
  rows,
  buckets: [{ at: at(from), starts: rows.length, skips: 0 }],
  truncated,
  schedules: Object.fromEntries(
    rows.map((each) => [each.schedule_id, { name: "", timezone: "UTC", status: "active" }]),
  ),
});

test.each<[string, number | null, boolean, number | null]>([
  ["all of it came", 4, false, null],
  ["it was cut in the middle: as much as was shown is asked for before now", 4, true, 10 - 3],
  ["it was cut close to now: the rest", 9, true, 9],
  ["it was cut at once: one bucket", 0, true, 9],
  ["nothing came", null, true, null],
])("where the last hours before now are asked for apart: %s", (_, last, truncated, from) => {
  const rows = last === null ? [] : [row(last)];
  const found = nearStart({ from: 0, to: 10 * HOUR }, { rows, truncated }, 3_600);
  expect(found).toBe(from === null ? null : from * HOUR);
});

test("parts become one fleet, and say which hours are not complete", () => {
  const fleet = fleetOf(
    part(0, 10, [row(0), row(3)], true),
    part(7, 10, [row(8, "b")]),
    part(10, 20, [row(12)], true),
    3_600,
  );
  expect(fleet.rows.map((each) => Date.parse(each.at) / HOUR)).toEqual([0, 3, 8, 12]);
  expect(fleet.gaps.map(({ from, to }) => [from / HOUR, to / HOUR])).toEqual([
    [3, 7],
    [12, 20],
  ]);
  expect(Object.keys(fleet.schedules)).toEqual(["a", "b"]);
});

test("hours of which nothing was asked leave no gap", () => {
  expect(fleetOf(undefined, undefined, part(0, 5, [row(1)]), 60)).toMatchObject({ gaps: [], bucketSeconds: 60 });
});
