// How many starts fall into each part of the view, and where so many come together that they are a herd.
import type { Schemas } from "../../api/client";
import { offsetMinutes } from "../../time/zones";
import { position, type Span } from "../../time/axis";

const MINUTE = 60_000;
const SIZES: readonly number[] = [10, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];
const MOST_BUCKETS = 180;

/** The smallest part that leaves bars wide enough to see, in seconds: a minute from half an hour to three. */
export function bucketSeconds(span: Span): number {
  const seconds = (span.to - span.from) / 1_000;
  return SIZES.find((size) => seconds / size <= MOST_BUCKETS) ?? SIZES[SIZES.length - 1]!;
}

/** Whole buckets of the local clock around the span, so that the same hours are asked for while the view moves a little. */
export function outward(span: Span, seconds: number, zone: string): Span {
  const size = seconds * 1_000;
  const offset = offsetMinutes(span.from, zone) * MINUTE;
  return {
    from: Math.floor((span.from + offset) / size) * size - offset,
    to: Math.ceil((span.to + offset) / size) * size - offset,
  };
}

export interface DensityBar {
  at: number;
  x: number;
  width: number;
  /** Of the highest, 0 to 1. */
  share: number;
  starts: number;
  skips: number;
  isPeak: boolean;
}

type Bucket = Pick<Schemas["AgendaBucket"], "at" | "starts" | "skips">;

export function densityBars(buckets: readonly Bucket[], seconds: number, span: Span, width: number): DensityBar[] {
  const highest = Math.max(1, ...buckets.map((each) => each.starts));
  const peaks = new Set(herds(buckets).map((each) => each.at));
  const size = position(span.from + seconds * 1_000, span, width);
  return buckets
    .map((each) => {
      const at = Date.parse(each.at);
      const share = each.starts / highest;
      return {
        at,
        x: position(at, span, width),
        width: size,
        share,
        starts: each.starts,
        skips: each.skips,
        isPeak: peaks.has(each.at),
      };
    })
    .filter((bar) => bar.x + bar.width > 0 && bar.x < width);
}

const MOST_HERDS = 3;
const SMALLEST_HERD = 5;

/** The highest buckets that stand far above the usual one. */
export function herds(buckets: readonly Bucket[]): Bucket[] {
  const full = buckets.filter((each) => each.starts > 0);
  if (full.length === 0) return [];
  const sorted = full.map((each) => each.starts).sort((one, other) => one - other);
  const usual = sorted[Math.floor((sorted.length - 1) / 2)]!;
  return full
    .filter((each) => each.starts >= SMALLEST_HERD && (each.starts >= 2.5 * usual || full.length === 1))
    .sort((one, other) => other.starts - one.starts || (one.at < other.at ? -1 : 1))
    .slice(0, MOST_HERDS);
}

/** Labels that would be written over one another give way to the higher ones. */
export function labelled(bars: readonly DensityBar[], room: number): DensityBar[] {
  const chosen: DensityBar[] = [];
  for (const bar of bars.filter((each) => each.isPeak).sort((one, other) => other.starts - one.starts)) {
    if (chosen.every((other) => Math.abs(other.x - bar.x) >= room)) chosen.push(bar);
  }
  return chosen;
}
