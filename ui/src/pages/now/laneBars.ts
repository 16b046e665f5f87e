// The bars of a lane with too many occurrences for single marks: counts by outcome for each part of the view.
import type { Schemas } from "../../api/client";
import { position } from "../../time/axis";
import type { Drawn } from "./density";

export type Counts = Omit<Schemas["LaneBucket"], "at">;

export interface LaneBar extends Counts {
  at: number;
  x: number;
  width: number;
}

export const NOTHING: Counts = { dispatched: 0, held: 0, failed: 0, missed: 0, skipped: 0 };
const NAMES = Object.keys(NOTHING) as (keyof Counts)[];

export function laneBars(
  buckets: readonly Schemas["LaneBucket"][],
  { origin, seconds, span, width }: Drawn,
): LaneBar[] {
  const size = seconds * 1_000;
  const found = new Map<number, LaneBar>();
  const wide = position(span.from + size, span, width);
  for (const bucket of buckets) {
    const at = Math.floor((Date.parse(bucket.at) - origin) / size) * size + origin;
    const bar = found.get(at) ?? { ...NOTHING, at, x: position(at, span, width), width: wide };
    for (const name of NAMES) bar[name] += bucket[name];
    found.set(at, bar);
  }
  return [...found.values()].filter((bar) => bar.x + bar.width > 0 && bar.x < width);
}

export interface Segment {
  name: "dispatched" | "failed" | "held" | "missed" | "skipped";
  y: number;
  height: number;
}

/** The base line, the height above it for runs, and below it for missed and skipped occurrences. */
export const BASE = 24;
const ABOVE = 20;
const BELOW = 8;
const LEAST = 3;

/** Upwards failed, dispatched and buffered; downwards missed and skipped. Each has a minimum height. */
export function segmentsOf(bar: Counts, most: number): Segment[] {
  const succeeded = bar.dispatched - bar.failed;
  const up = stacked(
    [
      ["failed", bar.failed],
      ["dispatched", succeeded],
      ["held", bar.held],
    ],
    most,
    ABOVE,
  );
  const down = stacked(
    [
      ["missed", bar.missed],
      ["skipped", bar.skipped],
    ],
    most,
    BELOW,
  );
  return [
    ...up.map(({ name, from, height }) => ({ name, y: BASE - from - height, height })),
    ...down.map(({ name, from, height }) => ({ name, y: BASE + 1 + from, height })),
  ];
}

function stacked<N extends Segment["name"]>(counts: readonly (readonly [N, number])[], most: number, room: number) {
  const there = counts.filter(([, many]) => many > 0);
  const total = there.reduce((sum, [, many]) => sum + many, 0);
  const free = Math.max(0, (room * total) / Math.max(most, 1) - LEAST * there.length);
  let from = 0;
  return there.map(([name, many]) => {
    const height = LEAST + Math.min(free, room - LEAST * there.length) * (many / total);
    const placed = { name, from, height };
    from += height;
    return placed;
  });
}

/** The highest of all bars, above or below the line. */
export function mostOf(bars: readonly Counts[]): number {
  return bars.reduce((most, bar) => Math.max(most, bar.dispatched + bar.held, bar.missed + bar.skipped), 1);
}

/** "1,200 dispatched, 3 failed, 2 missed"; for future hours "1,200 scheduled, 60 will skip". */
export function countWords(bar: Counts, isComing: boolean): string {
  const words: readonly (readonly [number, string])[] = [
    [bar.dispatched, isComing ? "scheduled" : "dispatched"],
    [bar.failed, "failed"],
    [bar.held, isComing ? "will be buffered" : "buffered"],
    [bar.missed, "missed"],
    [bar.skipped, isComing ? "will skip" : "skipped"],
  ];
  return words
    .filter(([many]) => many > 0)
    .map(([many, word]) => `${many.toLocaleString("en")} ${word}`)
    .join(", ");
}
