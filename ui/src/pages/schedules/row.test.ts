import { describe, expect, test } from "vitest";
import { nameOf, originsOf, signsOf, specText, whyNoNext, zoneOf } from "./row";
import type { Row } from "./useSchedules";

const row = (part: object): Row =>
  ({
    schedule_id: "id",
    name: "",
    status: "active",
    spec: {},
    source: "runtime",
    bundle: null,
    ...part,
  }) as unknown as Row;

test("the name, or else the id", () => {
  expect([nameOf(row({})), nameOf(row({ name: "Night" }))]).toEqual(["id", "Night"]);
});

test.each([
  [{ cron_expressions: ["0 2 * * *", "0 3 * * *"], timezone: "UTC" }, "0 2 * * *\n0 3 * * *\nUTC"],
  [{ intervals: [{ every: 60 }] }, '{"every":60}'],
  [{ at: ["2026-11-16T09:00:00Z"] }, '{"at":["2026-11-16T09:00:00Z"]}'],
])("the spec %j as it was written", (spec, text) => {
  expect(specText(row({ spec }))).toBe(text);
});

test("its zone, UTC where it names none", () => {
  expect([
    zoneOf(row({})),
    zoneOf(row({ spec: { timezone: 7 } })),
    zoneOf(row({ spec: { timezone: "Asia/Tokyo" } })),
  ]).toEqual(["UTC", "UTC", "Asia/Tokyo"]);
});

describe("signs", () => {
  test.each([
    [{}, undefined, []],
    [{ status: "paused", pause_reason: "moves", paused_by: "ann" }, undefined, [["Paused", "moves · by ann"]]],
    [
      { status: "paused", pause_reason: null, paused_by: null },
      { status: "paused", sentence: "s" },
      [["Paused", null]],
    ],
    [{ status: "broken", last_error_message: "no zone" }, undefined, [["Broken", "no zone"]]],
    [{ status: "broken" }, { status: "broken", sentence: "cannot be planned" }, [["Broken", "cannot be planned"]]],
    [{}, { status: "failing", sentence: "three in a row" }, [["Failing", "three in a row"]]],
  ])("%j %j", (part, health, signs) => {
    expect(signsOf(row(part), health as never).map(({ text, more }) => [text, more])).toEqual(signs);
  });
});

test.each([
  [{}, []],
  [{ source: "template" }, ["Managed"]],
  [{ source: "template", bundle: "shop" }, ["Bundle shop"]],
  [{ assignee_type: "agent", assignee_id: "writer" }, ["Agent writer"]],
  [{ assignee_type: "team", assignee_id: "desk" }, ["Team desk"]],
])("where %j comes from", (part, origins) => {
  expect(originsOf(row(part))).toEqual(origins);
});

test.each([
  [{ next_run_reason: "calendar" }, "Excluded by calendar"],
  [{ next_run_reason: null }, "No upcoming runs"],
  [{ status: "paused", next_run_reason: "status_not_triggerable" }, "Paused"],
])("why %j has no next", (part, why) => {
  expect(whyNoNext(row(part))).toBe(why);
});

test("a last run that failed is shown though the schedule is not failing yet", () => {
  const failed = row({ consecutive_failures: 1, last_error_message: "no route" });
  expect(signsOf(failed, undefined).map(({ text, more }) => [text, more])).toEqual([["Last run failed", "no route"]]);
  expect(signsOf(failed, { status: "failing", sentence: "x" } as never).map(({ text }) => text)).toEqual(["Failing"]);
});
