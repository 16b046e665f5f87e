import { expect, test } from "vitest";
import { BASE, countWords, laneBars, mostOf, NOTHING, segmentsOf, type Counts } from "./laneBars";

const MINUTE = 60_000;
const counts = (given: Partial<Counts>): Counts => ({ ...NOTHING, ...given });
const at = (minutes: number) => new Date(minutes * MINUTE).toISOString();

test("counted parts become bars of the view, and what lies outside of it none", () => {
  const bars = laneBars(
    [
      { at: at(-10), ...counts({ dispatched: 9 }) },
      { at: at(0), ...counts({ dispatched: 60, failed: 2 }) },
      { at: at(4), ...counts({ dispatched: 60, skipped: 1 }) },
      { at: at(5), ...counts({ missed: 7, held: 1 }) },
    ],
    { origin: 0, seconds: 300, span: { from: 0, to: 10 * MINUTE }, width: 100 },
  );
  expect(bars).toEqual([
    { at: 0, x: 0, width: 50, ...counts({ dispatched: 120, failed: 2, skipped: 1 }) },
    { at: 5 * MINUTE, x: 50, width: 50, ...counts({ missed: 7, held: 1 }) },
  ]);
  expect(mostOf(bars)).toBe(120);
});

test.each<[string, Partial<Counts>, string[]]>([
  ["what ran stands on the line", { dispatched: 5 }, ["dispatched"]],
  ["all that ran failed", { dispatched: 5, failed: 5 }, ["failed"]],
  ["one of very many failed, and is seen", { dispatched: 86_400, failed: 1 }, ["failed", "dispatched"]],
  ["what waits stands on top", { dispatched: 5, held: 1 }, ["dispatched", "held"]],
  ["what did not run hangs below", { missed: 3, skipped: 86_400 }, ["missed", "skipped"]],
  [
    "all of them",
    { dispatched: 2, failed: 1, held: 1, missed: 1, skipped: 1 },
    ["failed", "dispatched", "held", "missed", "skipped"],
  ],
  ["nothing", {}, []],
])("%s", (_, given, names) => {
  const bar = counts(given);
  const segments = segmentsOf(bar, mostOf([bar]));
  expect(segments.map((each) => each.name)).toEqual(names);
  for (const { name, y, height } of segments) {
    expect(height).toBeGreaterThanOrEqual(2);
    const isBelow = name === "missed" || name === "skipped";
    expect(isBelow ? y >= BASE : y + height <= BASE).toBe(true);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y + height).toBeLessThanOrEqual(34);
  }
  // None is drawn over another.
  const sorted = [...segments].sort((one, other) => one.y - other.y);
  for (const [index, each] of sorted.slice(1).entries())
    expect(sorted[index]!.y + sorted[index]!.height).toBeLessThanOrEqual(each.y + 1e-9);
});

test("what a bar counts, in words", () => {
  const bar = counts({ dispatched: 1_200, failed: 3, missed: 2, skipped: 4, held: 1 });
  expect(countWords(bar, false)).toBe("1,200 dispatched, 3 failed, 1 buffered, 2 missed, 4 skipped");
  expect(countWords(counts({ dispatched: 60, skipped: 1 }), true)).toBe("60 scheduled, 1 will skip");
});
