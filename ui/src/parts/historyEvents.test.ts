import { describe, expect, test } from "vitest";
import { eventLook, eventWhy, folded, isAbout, nextAfter, type HistoryEvent } from "./historyEvents";

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

test("what was told one by one is as few pages as if it had been asked for at once", () => {
  const read = (after: number, ...sequences: number[]) => ({
    page: { events: sequences.map((sequence) => ({ sequence })), has_more: false, next_cursor: null } as never,
    after,
  });
  const pages = [read(0, 1, 2), read(2, 3), read(3), read(3, 4), read(4, 5), read(5)];
  const shown = folded(pages, 3).map(({ page, after }) => [after, page.events.map((each) => each.sequence)]);
  expect(shown).toEqual([
    [0, [1, 2, 3]],
    [3, [4, 5]],
  ]);
});

test.each([
  ['{"schedule_id": "a"}', true],
  ['{"schedule_id": "b"}', false],
  ["null", false],
  ["no JSON", false],
])("whether %s is about a", (data, is) => {
  expect(isAbout(data, "a")).toBe(is);
});
