// The number of starts in each part of the view, and its peaks.
import type { Schemas } from "../../api/client";
import { offsetMinutes } from "../../time/zones";
import { position, type Span } from "../../time/axis";

const MINUTE = 60_000;
const SIZES: readonly number[] = [10, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];
const MOST_BUCKETS = 180;

/** The smallest bar length with legible bars, in seconds. */
export function bucketSeconds(span: Span): number {
  const seconds = (span.to - span.from) / 1_000;
  return SIZES.find((size) => seconds / size <= MOST_BUCKETS) ?? SIZES[SIZES.length - 1]!;
}

/** The counting interval in seconds: a minute, less for short bars, a fifth of long bars. */
export function countedSeconds(bar: number): number {
  return Math.max(Math.min(60, bar), bar / 5);
}

/** Whole local buckets around the span, so that small moves of the view repeat the same request. */
export function outward(span: Span, seconds: number, zone: string): Span {
  const size = seconds * 1_000;
  const offset = offsetMinutes(span.from, zone) * MINUTE;
  return {
    from: Math.floor((span.from + offset) / size) * size - offset,
    to: Math.ceil((span.to + offset) / size) * size - offset,
  };
}

/** The height of a bar is its peak counting interval, so that peaks are visible at any bar length. */
export interface DensityBar {
  at: number;
  x: number;
  width: number;
  /** The height relative to the highest bar, 0 to 1. */
  share: number;
  /** The starts in the peak interval, and its time. */
  starts: number;
  fullestAt: number;
  /** The starts in the whole bar. */
  total: number;
  skips: number;
  isPeak: boolean;
}

type Bucket = Pick<Schemas["AgendaBucket"], "at" | "starts" | "skips">;

/** The start and length of bars, and the view. */
export interface Drawn {
  origin: number;
  seconds: number;
  span: Span;
  width: number;
}

export function densityBars(buckets: readonly Bucket[], { origin, seconds, span, width }: Drawn): DensityBar[] {
  const slots = slotsOf(buckets, origin, seconds * 1_000);
  const highest = slots.reduce((most, each) => Math.max(most, each.starts), 1);
  const peaks = new Set(herds(slots));
  const size = position(span.from + seconds * 1_000, span, width);
  return slots
    .map((each) => ({
      ...each,
      x: position(each.at, span, width),
      width: size,
      share: each.starts / highest,
      isPeak: peaks.has(each),
    }))
    .filter((bar) => bar.x + bar.width > 0 && bar.x < width);
}

type Slot = Pick<DensityBar, "at" | "starts" | "fullestAt" | "total" | "skips">;

function slotsOf(buckets: readonly Bucket[], origin: number, size: number): Slot[] {
  const slots = new Map<number, Slot>();
  for (const { at: written, starts, skips } of buckets) {
    const counted = Date.parse(written);
    const at = Math.floor((counted - origin) / size) * size + origin;
    const known = slots.get(at) ?? { at, starts: 0, fullestAt: counted, total: 0, skips: 0 };
    const fullest = starts > known.starts ? { starts, fullestAt: counted } : {};
    slots.set(at, { ...known, ...fullest, total: known.total + starts, skips: known.skips + skips });
  }
  return [...slots.values()];
}

const MOST_HERDS = 3;
const SMALLEST_HERD = 5;

/** The peaks: bars far above the median. */
export function herds<T extends { at: number; starts: number }>(slots: readonly T[]): T[] {
  const full = slots.filter((each) => each.starts > 0);
  if (full.length === 0) return [];
  const sorted = full.map((each) => each.starts).sort((one, other) => one - other);
  const usual = sorted[Math.floor((sorted.length - 1) / 2)]!;
  return full
    .filter((each) => each.starts >= SMALLEST_HERD && (each.starts >= 2.5 * usual || full.length === 1))
    .sort((one, other) => other.starts - one.starts || one.at - other.at)
    .slice(0, MOST_HERDS);
}

/** Drop labels that overlap the label of a higher bar. */
export function labelled(bars: readonly DensityBar[], room: number): DensityBar[] {
  const chosen: DensityBar[] = [];
  for (const bar of bars.filter((each) => each.isPeak).sort((one, other) => other.starts - one.starts)) {
    if (chosen.every((other) => Math.abs(other.x - bar.x) >= room)) chosen.push(bar);
  }
  return chosen;
}
