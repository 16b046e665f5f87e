import { describe, expect, test } from "vitest";
import { eventLook, eventWhy, isAbout, nextAfter, type HistoryEvent } from "./historyEvents";

describe("eventWhy", () => {
  test.each([
    [{ detail: "the office moves", reason: "calendar" }, "the office moves"],
    [{ reason: "calendar" }, "the calendar closes this day"],
    [{ reason: "a_reason_of_tomorrow" }, "a reason of tomorrow"],
    [{ error: "no such zone" }, "no such zone"],
    [{ changed_fields: ["spec", "note"] }, "changed: spec, note"],
    [{ changed_fields: [] }, null],
    [{ detail: 7, reason: null }, null],
    [{}, null],
  ])("%j", (payload, why) => {
    expect(eventWhy(payload as Record<string, unknown>)).toBe(why);
  });
});

test("a kind of event that is newer than the page keeps its name", () => {
  expect(eventLook({ event_type: "ScheduleDreamt" } as unknown as HistoryEvent).word).toBe("ScheduleDreamt");
});

test.each([
  [{ events: [{ sequence: 1 }, { sequence: 100 }], next_cursor: 100 }, 0, 100],
  [{ events: [{ sequence: 101 }, { sequence: 107 }], next_cursor: null }, 100, 107],
  [{ events: [], next_cursor: null }, 107, 107],
])("the page after %j", (page, after, next) => {
  expect(nextAfter(page as never, after)).toBe(next);
});

test.each([
  ['{"schedule_id": "a"}', true],
  ['{"schedule_id": "b"}', false],
  ["null", false],
  ["no JSON", false],
])("whether %s is about a", (data, is) => {
  expect(isAbout(data, "a")).toBe(is);
});
