import { describe, expect, test } from "vitest";
import { eventLook, eventWhy, isAbout, newestOf, withNewer, type HistoryEvent } from "./historyEvents";

describe("eventWhy", () => {
  test.each([
    [{ detail: "the office moves", reason: "calendar" }, "the office moves"],
    [{ reason: "calendar" }, "Excluded by calendar"],
    [{ reason: "a_reason_of_tomorrow" }, "a reason of tomorrow"],
    [{ error: "no such zone" }, "no such zone"],
    [{ changed_fields: ["spec", "note"] }, "Changed: spec, note"],
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

test("newer events are added once before the newest known event", () => {
  const page = (...sequences: number[]) => ({ events: sequences.map((sequence) => ({ sequence })) }) as never;
  const newer = [3, 4, 5].map((sequence) => ({ sequence }) as HistoryEvent);
  const shown = withNewer([page(3, 2), page(1)], newer).map(({ events }) => events.map((each) => each.sequence));
  expect(shown).toEqual([[5, 4, 3, 2], [1]]);
  expect(newestOf([page()])).toBe(0);
});

test.each([
  ['{"schedule_id": "a"}', true],
  ['{"schedule_id": "b"}', false],
  ["null", false],
  ["no JSON", false],
])("whether %s is about a", (data, is) => {
  expect(isAbout(data, "a")).toBe(is);
});
