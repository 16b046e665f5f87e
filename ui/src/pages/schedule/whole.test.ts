import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { whole } from "./whole";

const told = (given: object) =>
  ({ schedule_id: "s", status: "active", spec: {}, ...given }) as unknown as Schemas["Schedule"];

test("what an answer leaves out is as by default", () => {
  expect(whole(told({ spec: { cron_expressions: ["0 9 * * *"] } }))).toMatchObject({
    spec: { timezone: "UTC", cron_expressions: ["0 9 * * *"] },
    calendars: [],
    inputs_rotation: [],
    pre_dispatch_condition: null,
  });
});

test("what it says stays", () => {
  expect(whole(told({ spec: { timezone: "Europe/Berlin" }, calendars: ["weekdays"] }))).toMatchObject({
    spec: { timezone: "Europe/Berlin" },
    calendars: ["weekdays"],
  });
});
