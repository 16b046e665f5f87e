import { describe, expect, test } from "vitest";
import { dayAfter, dayByKey, daysIn, dayWords, levelOf, monthsOf, rangeOf, weekdayOf, yearWords } from "./year";

describe("a year in months and weeks", () => {
  test.each([
    // year, month, days, weekday of the first (0 = Monday), weeks
    [2024, 2, 29, 3, 5],
    [2026, 2, 28, 6, 5],
    [2027, 2, 28, 0, 4], // four whole weeks
    [1900, 2, 28, 3, 5], // a hundred is no leap year …
    [2000, 2, 29, 1, 5], // … and four hundred is one
    [2026, 3, 31, 6, 6],
    [2026, 11, 30, 6, 6],
    [2026, 6, 30, 0, 5],
  ])("%d-%d has %d days, begins on %d, takes %d weeks", (year, month, days, first, weeks) => {
    const found = monthsOf(year)[month - 1]!;
    expect(daysIn(year, month)).toBe(days);
    expect(found.weeks).toHaveLength(weeks);
    expect(found.weeks[0]!.findIndex((date) => date !== null)).toBe(first);
    expect(found.weeks.flat().filter((date) => date !== null)).toHaveLength(days);
  });

  test("every day stands once, in order, in the column of its weekday", () => {
    for (const [year, days] of [
      [2023, 365],
      [2024, 366],
      [2100, 365],
    ] as const) {
      const months = monthsOf(year);
      const all = months.flatMap((month) => month.weeks.flat()).filter((date) => date !== null);
      expect(all).toHaveLength(days);
      expect([...all].sort()).toEqual(all);
      for (const week of months.flatMap((month) => month.weeks)) {
        week.forEach((date, column) => date !== null && expect(weekdayOf(date)).toBe(column));
      }
    }
  });
});

test.each([
  ["2026-03-01", "ArrowLeft", "2026-02-28"],
  ["2024-03-01", "ArrowLeft", "2024-02-29"],
  ["2026-12-29", "ArrowDown", "2026-12-31"],
  ["2026-01-03", "ArrowUp", "2026-01-01"],
  ["2026-03-31", "PageUp", "2026-02-28"],
  ["2026-12-05", "PageDown", "2026-12-05"],
  ["2026-02-10", "Home", "2026-02-01"],
  ["2024-02-10", "End", "2024-02-29"],
  ["2026-02-10", "Enter", null],
])("from %s the key %s leads to %s", (from, key, to) => expect(dayByKey(from, key)).toBe(to));

test.each([
  [0, 1, 10, 0],
  [1, 1, 1, 2], // all alike
  [48, 48, 48, 2],
  [1, 1, 86_400, 1],
  [24, 1, 86_400, 2],
  [86_400, 1, 86_400, 4],
  [5, 1, 10, 3],
  [10, 10, 11, 1],
  [11, 10, 11, 4],
])("%d fires where days have %d to %d are level %d", (fires, least, most, level) =>
  expect(levelOf(fires, { least, most })).toBe(level),
);

test.each([
  ["2026-11-16", "2026-11-17"],
  ["2026-12-31", "2027-01-01"],
  ["2028-02-28", "2028-02-29"],
])("after %s comes %s", (day, next) => expect(dayAfter(day)).toBe(next));

test("the range is that of the days that have fires", () => {
  const day = (fires: number) => ({ date: "2026-01-01", fires, skips: 1, reasons: {} });
  expect(rangeOf([day(0), day(3), day(7)])).toEqual({ least: 3, most: 7 });
  expect(levelOf(0, rangeOf([]))).toBe(0);
});

test.each([
  [undefined, undefined, "Mon 16 November 2026: no fires"],
  [{ date: "2026-11-16", fires: 1, skips: 0, reasons: {} }, undefined, "Mon 16 November 2026: 1 fire"],
  [
    { date: "2026-11-16", fires: 2_000, skips: 1, reasons: { calendar: 1 } },
    undefined,
    "Mon 16 November 2026: 2,000 fires, 1 skipped (Excluded by calendar)",
  ],
  [
    { date: "2026-11-16", fires: 0, skips: 3, reasons: { calendar: 1, outside_window: 2 } },
    "Day off",
    "Mon 16 November 2026: 3 skipped (Outside the start and end of the schedule × 2; Excluded by calendar × 1), excluded (Day off)",
  ],
  [
    { date: "2026-11-16", fires: 0, skips: 1, reasons: { calendar: 1 }, detail: "a holiday" },
    undefined,
    "Mon 16 November 2026: 1 skipped (Excluded by calendar): a holiday",
  ],
])("the text of a day %#", (day, closed, words) => expect(dayWords("2026-11-16", day, closed)).toBe(words));

test.each([
  ["closed", "Christmas Day", "excluded (Christmas Day)"],
  ["closed", undefined, "included"],
  ["open", "", "included"],
  ["open", undefined, "excluded"],
] as const)("a day of a calendar that lists %s days, %s", (listed, reason, words) =>
  expect(dayWords("2026-11-16", undefined, reason, listed)).toBe(`Mon 16 November 2026: ${words}`),
);

test("a year that was too full to be counted to its end says so", () => {
  const days = [{ date: "2026-01-01", fires: 5, skips: 2, reasons: {} }];
  expect(yearWords(2026, days, false)).toBe("2026: 5 fires, 2 skipped");
  expect(yearWords(2026, days, true)).toBe("2026: at least 5 fires, 2 skipped");
});
