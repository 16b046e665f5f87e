import { describe, expect, test } from "vitest";
import { axisMarks, axisText, panned, startOfDay, stepFor, zoomed } from "./axis";
import { clockText, dateTimeText, durationText, isoDay, offsetText, relativeText, sameClock } from "./zones";

const HOUR = 3_600_000;
const at = (text: string): number => Date.parse(text);
const clocks = (from: string, to: string, zone: string, most = 30): string[] =>
  axisMarks({ from: at(from), to: at(to) }, zone, most).map((mark) => clockText(mark.at, zone));

describe("marks of an axis", () => {
  test("the hour that is left out in spring has no mark, and the shift is shown", () => {
    // Berlin, 29 March 2026: 02:00 becomes 03:00.
    expect(clocks("2026-03-29T00:00:00Z", "2026-03-29T04:00:00Z", "Europe/Berlin")).toEqual([
      "01:00",
      "01:10",
      "01:20",
      "01:30",
      "01:40",
      "01:50",
      "03:00",
      "03:10",
      "03:20",
      "03:30",
      "03:40",
      "03:50",
      "04:00",
      "04:10",
      "04:20",
      "04:30",
      "04:40",
      "04:50",
      "05:00",
      "05:10",
      "05:20",
      "05:30",
      "05:40",
      "05:50",
    ]);
    const marks = axisMarks({ from: at("2026-03-29T00:00:00Z"), to: at("2026-03-29T04:00:00Z") }, "Europe/Berlin", 4);
    expect(marks.map((mark) => mark.shifted)).toEqual([0, 60, 0, 0]);
  });

  test("the hour that comes twice in autumn has two marks", () => {
    // Berlin, 25 October 2026: 03:00 becomes 02:00.
    const marks = axisMarks({ from: at("2026-10-24T23:00:00Z"), to: at("2026-10-25T03:00:00Z") }, "Europe/Berlin", 4);
    expect(marks.map((mark) => clockText(mark.at, "Europe/Berlin"))).toEqual(["01:00", "02:00", "02:00", "03:00"]);
    expect(marks.map((mark) => mark.shifted)).toEqual([0, 0, -60, 0]);
  });

  test("a shift of half an hour leaves out a mark and no more", () => {
    // 4 October 2026: 02:00 becomes 02:30.
    const marks = axisMarks(
      { from: at("2026-10-03T14:30:00Z"), to: at("2026-10-03T17:30:00Z") },
      "Australia/Lord_Howe",
      4,
    );
    expect(marks.map((mark) => clockText(mark.at, "Australia/Lord_Howe"))).toEqual(["01:00", "03:00", "04:00"]);
    expect(marks.map((mark) => mark.shifted)).toEqual([0, 30, 0]);
  });

  test("a day that has no midnight is written with its date, however far apart the marks are", () => {
    // Asunción, 1 October 2023: 00:00 becomes 01:00.
    const span = { from: at("2023-10-01T00:00:00Z"), to: at("2023-10-01T12:00:00Z") };
    const marks = axisMarks(span, "America/Asuncion", 6);
    expect(marks.map((mark) => axisText(mark, "America/Asuncion")).slice(0, 4)).toEqual([
      "20:00",
      "22:00",
      "Sun 1 Oct",
      "02:00",
    ]);
  });

  test("a view that begins on an odd hour has its first mark on an even one", () => {
    expect(clocks("2026-11-16T21:00:00Z", "2026-11-17T09:00:00Z", "UTC", 6)[0]).toBe("22:00");
  });

  test.each([
    [
      "seconds",
      "2026-11-17T20:27:05Z",
      "2026-11-17T20:28:35Z",
      ["20:27:15", "20:27:30", "20:27:45", "20:28", "20:28:15", "20:28:30"],
    ],
    [
      "years",
      "2023-01-01T06:00:00Z",
      "2026-10-01T06:00:00Z",
      ["Jul 2023", "Jan 2024", "Jul 2024", "Jan 2025", "Jul 2025", "Jan 2026", "Jul 2026"],
    ],
  ])("a span of %s has as many marks as there is room for", (_, from, to, texts) => {
    const zone = "Atlantic/Reykjavik";
    const marks = axisMarks({ from: at(from), to: at(to) }, zone, 8);
    expect(marks.map((mark) => axisText(mark, zone))).toEqual(texts);
  });

  test("zones with quarters of an hour have marks at their own whole hours", () => {
    expect(clocks("2026-11-16T00:00:00Z", "2026-11-16T03:00:00Z", "Asia/Kathmandu", 4)).toEqual([
      "06:00",
      "07:00",
      "08:00",
    ]);
  });

  test("days begin where they begin, also where midnight does not exist", () => {
    // Beirut, 29 March 2026: 00:00 becomes 01:00.
    const days = axisMarks({ from: at("2026-03-27T12:00:00Z"), to: at("2026-03-31T12:00:00Z") }, "Asia/Beirut", 4);
    expect(days.map((mark) => isoDay(mark.at, "Asia/Beirut"))).toEqual([
      "2026-03-28",
      "2026-03-29",
      "2026-03-30",
      "2026-03-31",
    ]);
    expect(clockText(days[1]!.at, "Asia/Beirut")).toBe("01:00");
    expect(days.every((mark) => mark.isDay)).toBe(true);
  });

  test("a day of 23 hours and one of 25 are followed by the next", () => {
    for (const [from, days] of [
      ["2026-03-28T12:00:00Z", 4],
      ["2026-10-24T12:00:00Z", 4],
    ] as const) {
      const marks = axisMarks({ from: at(from), to: at(from) + days * 24 * HOUR }, "America/New_York", 5);
      const gaps = marks.slice(1).map((mark, index) => (mark.at - marks[index]!.at) / HOUR);
      expect(gaps.every((gap) => [23, 24, 25].includes(gap))).toBe(true);
    }
  });

  test("marks are in order, inside, and not more than asked for, whatever the span", () => {
    for (const hours of [0.2, 1, 5, 26, 100, 700]) {
      for (const zone of ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]) {
        const span = { from: at("2026-03-28T22:07:13Z"), to: at("2026-03-28T22:07:13Z") + hours * HOUR };
        const marks = axisMarks(span, zone, 12).map((mark) => mark.at);
        expect(marks).toEqual([...new Set(marks)].sort((a, b) => a - b));
        expect(marks.length).toBeGreaterThan(0);
        expect(marks.length).toBeLessThanOrEqual(14);
        expect(marks.every((each) => each >= span.from && each < span.to)).toBe(true);
      }
    }
  });
});

test("the step grows with the span", () => {
  expect(stepFor({ from: 0, to: HOUR }, 12)).toBe(5 * 60_000);
  expect(stepFor({ from: 0, to: 24 * HOUR }, 12)).toBe(2 * HOUR);
});

test("the instant under the pointer stays when the axis is zoomed, and there is an end to it", () => {
  const span = { from: 0, to: 10 * HOUR };
  expect(zoomed(span, 0.5, 4 * HOUR)).toEqual({ from: 2 * HOUR, to: 7 * HOUR });
  expect(zoomed(span, 1e-9, 0).to).toBe(5 * 60_000);
  expect(zoomed(span, 1e9, 0).to).toBe(7 * 24 * HOUR);
  expect(panned(span, 0.1)).toEqual({ from: HOUR, to: 11 * HOUR });
});

test("a day begins at its first instant", () => {
  expect(startOfDay(at("2026-11-16T12:00:00Z"), "Europe/Berlin")).toBe(at("2026-11-15T23:00:00Z"));
  expect(startOfDay(at("2026-10-25T12:00:00Z"), "Europe/Berlin")).toBe(at("2026-10-24T22:00:00Z"));
});

describe("texts of instants", () => {
  test("seconds are written only where there are some", () => {
    expect(dateTimeText("2026-11-16T08:00:00Z", "Europe/Berlin")).toBe("Mon 16 Nov 2026, 09:00");
    expect(clockText("2026-11-16T08:00:07Z", "UTC")).toBe("08:00:07");
  });
  test.each([
    ["2026-11-16T08:00:00Z", "UTC", "Z"],
    ["2026-11-16T08:00:00Z", "Asia/Kathmandu", "+05:45"],
    ["2026-07-16T08:00:00Z", "America/New_York", "−04:00"],
    ["2026-07-16T08:00:00Z", "Nowhere/Unknown", "Z"],
  ])("%s in %s is %s", (when, zone, text) => expect(offsetText(at(when), zone)).toBe(text));
  test("two zones with the same clock differ from two with different clocks", () => {
    expect(sameClock("2026-01-16T08:00:00Z", "Europe/London", "UTC")).toBe(true);
    expect(sameClock("2026-07-16T08:00:00Z", "Europe/London", "UTC")).toBe(false);
  });
  test.each([
    [0, "now"],
    [59_000, "in 59 s"],
    [-599_000, "9 min 59 s ago"],
    [-601_000, "10 min ago"],
    [881_000, "in 14 min"],
    [3_900_000, "in 1 h 5 min"],
    [-86_400_000, "1 d ago"],
    [-90_061_000, "1 d 1 h ago"],
  ])("%d ms from now is %s", (ms, text) => expect(relativeText(ms, 0)).toBe(text));
  test.each([
    [0, "0 s"],
    [0.25, "250 ms"],
    [9.54, "9.5 s"],
    [61, "1 min 1 s"],
    [7_200, "2 h"],
  ])("%d seconds are %s", (seconds, text) => expect(durationText(seconds)).toBe(text));
});
