import { describe, expect, test } from "vitest";
import { indexAt, recentLook, recentSummary, recentText, trendOf, type Recent } from "./recent";

function one(part: Partial<Recent> = {}): Recent {
  const base = {
    at: "2026-11-16T09:00:00Z",
    outcome: "fired",
    state: "succeeded",
    reason: null,
    run_id: "r",
    origin: "scheduled",
  };
  return { ...base, duration_seconds: null, late_seconds: null, count: 1, ...part } as Recent;
}

describe("recentLook", () => {
  test.each([
    [{ outcome: "fired", state: "failed" }, "cross"],
    [{ outcome: "fired", state: "succeeded" }, "disc"],
    [{ outcome: "fired", state: null }, "dot"],
    [{ outcome: "held", state: "succeeded" }, "disc"],
    [{ outcome: "held", state: null }, "bars"],
    [{ outcome: "skipped", state: null }, "diamond"],
    [{ outcome: "missed", state: null }, "triangle"],
    [{ outcome: "dreamt", state: null }, "dot"],
    [{ outcome: "fired", state: "dreaming" }, "dot"],
  ])("%j", (part, shape) => {
    expect(recentLook(part as Recent).shape).toBe(shape);
  });
});

describe("recentText", () => {
  test.each([
    [{}, "Succeeded"],
    [{ state: "failed", duration_seconds: 12.3, late_seconds: 3 }, "Failed · duration 12 s · delay 3 s"],
    [{ late_seconds: 0.2 }, "Succeeded"],
    [{ outcome: "skipped", state: null, reason: "calendar" }, "Skipped · Excluded by calendar"],
    [{ outcome: "missed", state: null, reason: "missed", count: 1200 }, "1,200 missed · Scheduler was down"],
    [{ origin: "manual" }, "Succeeded · Manual"],
    [{ origin: "backfill" }, "Succeeded · Backfill"],
  ])("%j", (part, text) => {
    expect(recentText(one(part as Partial<Recent>))).toBe(text);
  });
});

test("the summary counts, the most frequent first", () => {
  const missed = one({ outcome: "missed", state: null, count: 2 });
  expect(recentSummary([one({ state: "failed" }), one(), one(), one(), missed])).toBe(
    "Last 5: 3 succeeded, 2 missed, 1 failed",
  );
  expect(recentSummary([])).toBe("No occurrences yet");
});

describe("trendOf", () => {
  const took = (...seconds: (number | null)[]) => seconds.map((each) => ({ duration_seconds: each }));

  test.each([[[]], [[null]], [[Number.NaN, -1]]])("%j is no trend", (durations) => {
    expect(trendOf(took(...durations), 10, 20)).toBeNull();
  });

  test.each([
    [[0, 10], "M5 18L15 2"],
    [[null, 10, null, 5], "M15 2L35 10"], // each below its mark
    [[0, 0], "M5 18L15 18"],
    [[7], "M5 2"],
  ])("%j", (durations, line) => {
    expect(trendOf(took(...durations), 10, 20)?.line).toBe(line);
  });

  test("the median is one of them", () => {
    expect(trendOf(took(9, 1, 5, null), 10, 20)).toMatchObject({ median: 5, newest: 5, count: 3, last: { x: 25 } });
  });
});

test.each([
  [-5, 0],
  [0, 0],
  [9.9, 0],
  [10, 1],
  [500, 2],
])("at %i lies mark %i of three", (x, index) => {
  expect(indexAt(x, 10, 3)).toBe(index);
});
