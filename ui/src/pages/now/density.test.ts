import { expect, test } from "vitest";
import { bucketSeconds, countedSeconds, densityBars, herds, labelled, outward } from "./density";

const FROM = Date.parse("2026-11-16T00:00:00Z");
const HOUR = 3_600_000;
const at = (minute: number) => new Date(FROM + minute * 60_000).toISOString();
const drawn = (seconds: number) => ({
  origin: FROM,
  seconds,
  span: { from: FROM, to: FROM + 10 * HOUR },
  width: 1_000,
});
const bucket = (minute: number, starts: number) => ({ at: at(minute), starts, skips: 0 });

test.each([
  [5 / 60, 10],
  [0.5, 10],
  [1, 60],
  [3, 60],
  [6, 120],
  [12, 300],
  [24, 600],
  [72, 1_800],
  [168, 3_600],
])("of %d hours a bucket is %d seconds", (hours, seconds) => {
  expect(bucketSeconds({ from: 0, to: hours * HOUR })).toBe(seconds);
});

test.each([
  ["UTC", 3_600, "2026-11-16T00:00:00.000Z"],
  ["Asia/Kolkata", 3_600, "2026-11-15T23:30:00.000Z"],
  ["Europe/Berlin", 86_400, "2026-11-15T23:00:00.000Z"],
])("in %s a bucket of %d s begins on the local clock", (zone, seconds, begins) => {
  const span = outward({ from: FROM + 5 * 60_000, to: FROM + 2 * HOUR }, seconds, zone);
  expect(new Date(span.from).toISOString()).toBe(begins);
  expect((span.to - span.from) % (seconds * 1_000)).toBe(0);
  expect(span.to).toBeGreaterThanOrEqual(FROM + 2 * HOUR);
});

test.each<[string, number[], number[]]>([
  ["nothing", [], []],
  ["an even load has no herd", [8, 9, 10, 9, 8], []],
  ["one that stands out", [2, 2, 40, 3, 2], [40]],
  ["few are no herd, however rare the others", [1, 1, 4, 1], []],
  ["three at most", [1, 1, 1, 1, 1, 1, 1, 1, 1, 20, 30, 40, 50], [50, 40, 30]],
  ["a single moment", [12], [12]],
])("herds: %s", (_, starts, found) => {
  expect(herds(starts.map((many, at) => ({ at, starts: many }))).map((each) => each.starts)).toEqual(found);
});

test("bars are placed at their minutes, and the highest has the full height", () => {
  const bars = densityBars([bucket(-30, 1), bucket(0, 5), bucket(60, 20), bucket(700, 9)], drawn(600));
  expect(bars.map(({ x, share }) => [Math.round(x), share])).toEqual([
    [0, 0.25],
    [100, 1],
  ]);
  expect(bars[0]!.width).toBeCloseTo(16.67, 1);
});

test("labels do not stand on one another", () => {
  const bars = densityBars(
    [bucket(0, 1), bucket(5, 1), bucket(10, 1), bucket(60, 20), bucket(65, 30), bucket(300, 25)],
    drawn(300),
  );
  expect(labelled(bars, 60).map((each) => each.starts)).toEqual([30, 25]);
});

test("a bar is as high as its fullest minute, and says which one that is", () => {
  expect([10, 60, 300, 600, 3_600].map(countedSeconds)).toEqual([10, 60, 60, 120, 720]);
  // One schedule that starts every second, and a herd: over five minutes they are nearly alike.
  const steady = Array.from({ length: 10 }, (_, minute) => bucket(minute, minute === 7 ? 560 : 60));
  const [calm, full] = densityBars(steady, drawn(300));
  expect(calm).toMatchObject({ starts: 60, total: 300, isPeak: false });
  expect(full).toMatchObject({ starts: 560, total: 800, fullestAt: Date.parse(at(7)), isPeak: true });
});

test("a view is never sent as more parts than lanes may have", () => {
  for (let minutes = 5; minutes <= 7 * 24 * 60; minutes = Math.ceil(minutes * 1.07)) {
    const span = { from: FROM + 7, to: FROM + 7 + minutes * 60_000 };
    const bar = bucketSeconds(span);
    const { from, to } = outward(span, bar, "Asia/Kathmandu");
    expect((to - from) / 1_000 / countedSeconds(bar)).toBeLessThanOrEqual(1_000);
    expect(bar % countedSeconds(bar)).toBe(0);
  }
});
