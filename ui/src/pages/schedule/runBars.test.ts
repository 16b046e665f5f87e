import { describe, expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { barsOf, barWidth, barWords, gridOf, heightOf, latenessOf, nearest, placed, scaleOf, spanOf } from "./runBars";

type RunSummary = Schemas["RunSummary"];

const NOW = Date.parse("2026-11-16T12:00:00Z");
const MINUTE = 60_000;

function run(minutes: number, given: Partial<RunSummary> = {}): RunSummary {
  const at = new Date(NOW + minutes * MINUTE).toISOString();
  const plain = {
    run_id: `r${minutes}`,
    state: "succeeded",
    origin: "scheduled",
    nominal: at,
    due: at,
    created_at: at,
    started_at: at,
    finished_at: at,
    duration_seconds: 10,
    reason: null,
    covers: null,
    sequence: 1,
  };
  return { ...plain, ...given } as unknown as RunSummary;
}

describe("bars of runs", () => {
  test("are sorted by scheduled time", () => {
    expect(barsOf([run(2), run(0), run(1)], NOW).map((bar) => bar.runId)).toEqual(["r0", "r1", "r2"]);
  });

  test("without a run have a reason and no height", () => {
    const [skip] = barsOf(
      [run(0, { run_id: "", state: "skipped", reason: "calendar", started_at: null, duration_seconds: null })],
      NOW,
    );
    expect(skip).toMatchObject({ runId: null, seconds: null, reason: "Excluded by calendar" });
    expect(skip!.look.shape).toBe("diamond");
    const covers = { first: "", last: "", count: 12 };
    const [missed] = barsOf(
      [run(0, { run_id: "", state: "skipped", reason: "missed", covers, duration_seconds: null, started_at: null })],
      NOW,
    );
    expect(missed!.look.shape).toBe("triangle");
    expect(barWords(missed!)).toBe("Missed × 12 · Scheduler was down");
  });

  test("an active run lasts until now", () => {
    const [bar] = barsOf([run(-5, { state: "running", finished_at: null, duration_seconds: null })], NOW);
    expect(bar!.seconds).toBe(300);
  });

  test.each([
    [{}, 0],
    [{ due: new Date(NOW - 90_000).toISOString() }, 90],
    [{ due: new Date(NOW + 90_000).toISOString() }, 0],
    [{ started_at: null }, null],
    [{ origin: "manual" as const }, null],
  ])("lateness %#", (given, seconds) => expect(latenessOf(run(0, given))).toBe(seconds));
});

describe("the scale", () => {
  const of = (...seconds: number[]) =>
    barsOf(
      seconds.map((each, index) => run(index, { duration_seconds: each })),
      NOW,
    );

  test("is straight where durations are alike, and by magnitude where they spread", () => {
    expect(scaleOf(of(1, 2, 3)).log).toBe(false);
    expect(scaleOf(of(0.1, 3_600)).log).toBe(true);
    expect(scaleOf([])).toEqual({ log: false, most: 1, least: 1 });
  });

  test("heights grow with durations, inside of 0 and 1", () => {
    for (const lengths of [
      [0, 1, 2, 3],
      [0, 0.01, 1, 60, 86_400],
    ]) {
      const scale = scaleOf(of(...lengths));
      const heights = lengths.map((each) => heightOf(each, scale));
      expect([...heights].sort((one, other) => one - other)).toEqual(heights);
      expect(heights.every((each) => each > 0 && each <= 1)).toBe(true);
      expect(heights.at(-1)).toBe(1);
    }
  });

  test("few lines, of round durations that are inside", () => {
    expect(gridOf(scaleOf(of(8, 9, 10)))).toEqual([5, 10]);
    expect(gridOf(scaleOf(of(0.02, 0.03, 0.08)))).toEqual([0.02, 0.05]);
    const wide = gridOf(scaleOf(of(0.05, 90_000)));
    expect(wide.length).toBeLessThanOrEqual(5);
    expect(wide.every((each) => each >= 0.05 && each <= 90_000)).toBe(true);
  });
});

test("one bar alone stands in the middle of an hour", () => {
  const span = spanOf(barsOf([run(0)], NOW));
  expect(span).toEqual({ from: NOW - 30 * MINUTE, to: NOW + 30 * MINUTE });
  expect(placed(barsOf([run(0)], NOW), span, 100, 50)[0]!.x).toBe(50);
  expect(spanOf([])).toEqual({ from: 0, to: 1 });
});

test("bars are as wide as their neighbours allow", () => {
  const few = barsOf([run(0), run(60)], NOW);
  expect(barWidth(few, spanOf(few), 1_000)).toBe(14);
  const many = barsOf(
    Array.from({ length: 400 }, (_, index) => run(index)),
    NOW,
  );
  expect(barWidth(many, spanOf(many), 1_000)).toBe(2);
});

test("the pointer finds the nearest bar, or none", () => {
  const bars = barsOf([run(0), run(10), run(20)], NOW);
  const places = placed(bars, spanOf(bars), 1_000, 50);
  expect(nearest(places, places[1]!.x + 3, 20)).toBe(1);
  expect(nearest(places, places[1]!.x + 200, 20)).toBeNull();
  expect(nearest([], 0, 20)).toBeNull();
});
