import { expect, test } from "vitest";
import { asDay, asMoment, readSearch } from "./search";

test("what an address says is read, and what does not fit is not", () => {
  expect(
    readSearch({
      tab: "runs",
      state: "failed",
      origin: "manual",
      year: 2026,
      day: "2026-02-28",
      before: "3",
      after: 4,
    }),
  ).toEqual({
    tab: "runs",
    from: null,
    at: null,
    year: 2026,
    day: "2026-02-28",
    state: "failed",
    origin: "manual",
    before: 3,
    after: 4,
  });
  expect(
    readSearch({
      tab: ["runs"],
      state: "constructor",
      origin: 7,
      year: "1e9",
      day: "2026-02-30",
      before: -1,
      after: 1.5,
      from: {},
    }),
  ).toEqual({
    tab: "coming",
    from: null,
    at: null,
    year: null,
    day: null,
    state: null,
    origin: null,
    before: null,
    after: null,
  });
});

test.each([
  ["2026-11-16T09:00:00+01:00", "2026-11-16T09:00:00+01:00"],
  [" 2026-11-16 09:00:00z ", "2026-11-16T09:00:00Z"],
  ["2026-11-16T09:00:00", null], // whose clock?
  ["2026-13-16T09:00:00Z", null],
  ["now", null],
  [20261116, null],
])("%s as a moment", (text, found) => expect(asMoment(text)).toBe(found));

test.each([
  ["2024-02-29", "2024-02-29"],
  ["2026-02-29", null],
  ["0001-01-01", null],
  ["2026-1-1", null],
])("%s as a day", (text, found) => expect(asDay(text)).toBe(found));
