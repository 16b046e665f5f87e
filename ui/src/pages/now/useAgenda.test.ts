import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { NOTHING } from "./laneBars";
import { fleetOf } from "./useAgenda";

const HOUR = 3_600_000;
const at = (hours: number) => new Date(hours * HOUR).toISOString();
const row = (hours: number, id: string): Schemas["AgendaRow"] => ({
  schedule_id: id,
  at: at(hours),
  decision: "dispatch",
  reason: null,
  predicted: false,
});
/** A page with one lane, whose rows are at these hours; `dense` = as many in the first hour, without rows. */
const page = (id: string, hours: number[], dense = 0): Schemas["Agenda"] => ({
  namespace: "default",
  start: at(0),
  end: at(20),
  rows: dense ? [] : hours.map((each) => row(each, id)),
  buckets: [{ at: at(0), starts: dense || hours.length, skips: 1 }],
  truncated: dense > 0,
  schedules: { [id]: { name: "", timezone: "UTC", status: "active" } },
  lanes: [
    { schedule_id: id, name: "", rows_complete: dense === 0, buckets: [{ at: at(0), ...NOTHING, dispatched: dense }] },
  ],
});

test("pages become one fleet: rows in order of time, and starts of all schedules", () => {
  const fleet = fleetOf([page("a", [], 3_600), page("b", [12, 0]), page("c", [3])], 300, false);
  expect(fleet.rows.map((each) => [each.schedule_id, Date.parse(each.at) / HOUR])).toEqual([
    ["b", 0],
    ["c", 3],
    ["b", 12],
  ]);
  expect(fleet.buckets).toEqual([{ at: at(0), starts: 3_603, skips: 3 }]);
  expect(fleet.lanes?.map((each) => [each.schedule_id, each.rows_complete])).toEqual([
    ["a", false],
    ["b", true],
    ["c", true],
  ]);
  expect(Object.keys(fleet.schedules)).toEqual(["a", "b", "c"]);
});

test("rows that were asked for by their reason have no lanes", () => {
  const { lanes: _, ...rows } = page("a", [1, 2]);
  expect(fleetOf([rows], 60, true)).toMatchObject({ lanes: null, isCut: true, bucketSeconds: 60, countedSeconds: 60 });
});
