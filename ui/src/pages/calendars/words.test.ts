import { expect, test } from "vitest";
import { coverageOf, isOfRule, listedDays, meaningOf, readDates, toggled } from "./words";

test.each([
  [{ kind: "skip_dates", rule: null, dates: ["2026-12-24"] }, "Excludes 1 date"],
  [{ kind: "only_dates", rule: "weekdays", dates: [] }, "Includes only weekdays"],
  [{ kind: "skip_dates", rule: "weekends", dates: ["2026-12-24", "2026-12-31"] }, "Excludes weekends and 2 dates"],
] as const)("%j", (calendar, words) => expect(meaningOf({ ...calendar, dates: [...calendar.dates] })).toBe(words));

test.each([
  [{ covers: ["2026-01-01", "2026-12-25"], rule: null }, "2026-01-01 to 2026-12-25"],
  [{ covers: null, rule: "weekends" }, "Every year"],
  [{ covers: ["1991-01-01", "2100-12-31"], rule: "holidays:DE" }, "1991-01-01 to 2100-12-31"],
  [{ covers: null, covered_until: "2026-12-31", rule: null }, "Until 2026-12-31"],
  [{ covers: null, rule: null }, "No dates"],
])("%j covers %s", (calendar, text) => expect(coverageOf(calendar)).toBe(text));

test("dates are parsed with any separator, and invalid ones are reported", () => {
  expect(readDates("2026-12-31, 2026-12-24\n2026-02-30 x 2026-12-24")).toEqual({
    dates: ["2026-12-24", "2026-12-31"],
    wrong: ["2026-02-30", "x"],
  });
});

test("a day that is clicked is put in, and out again", () => {
  expect(toggled(["2026-01-02"], "2026-01-01")).toEqual(["2026-01-01", "2026-01-02"]);
  expect(toggled(["2026-01-01"], "2026-01-01")).toEqual([]);
});

test("the days of a year are those of the rule and those of the draft", () => {
  const days = [
    { date: "2026-12-24", name: null },
    { date: "2026-12-25", name: "Christmas Day" },
    { date: "2026-12-31", name: null },
    { date: "2025-12-25", name: "of the year that was shown before" },
  ];
  const calendar = { days, dates: ["2026-12-24", "2026-12-31"] };
  expect(listedDays(calendar, ["2026-12-24", "2026-12-30", "2027-01-01"], 2026)).toEqual({
    "2026-12-24": "",
    "2026-12-25": "Christmas Day",
    "2026-12-30": "",
  });
  expect([
    isOfRule(calendar, "2026-12-25"),
    isOfRule(calendar, "2026-12-24"),
    isOfRule(calendar, "2026-12-01"),
  ]).toEqual([true, false, false]);
});
