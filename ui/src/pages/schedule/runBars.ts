// Bars of the run chart: time, duration and state. Occurrences without a run are on the baseline.
import type { Schemas } from "../../api/client";
import { MISSED, RUN_LOOKS, reasonText, type Look } from "../../marks/outcomes";
import { position, type Span } from "../../time/axis";
import { durationText, instant } from "../../time/zones";

type RunSummary = Schemas["RunSummary"];

export interface Bar {
  key: string;
  runId: string | null;
  /** Scheduled time, or the time of the request. */
  at: string;
  look: Look;
  /** null = no run, or not started. */
  seconds: number | null;
  lateSeconds: number | null;
  reason: string | null;
  /** Number of missed occurrences that the bar covers. */
  count: number;
}

/** Bars, oldest first. `now` is the end of active runs. */
export function barsOf(runs: readonly RunSummary[], now: number): Bar[] {
  return runs.map((run, index) => barOf(run, index, now)).sort((one, other) => instant(one.at) - instant(other.at));
}

function barOf(run: RunSummary, index: number, now: number): Bar {
  const isMissed = run.reason === "missed" || run.reason === "catchup_cap";
  return {
    key: run.run_id || `${run.sequence ?? index}`,
    runId: run.run_id || null,
    at: run.nominal ?? run.started_at ?? run.created_at,
    look: !run.run_id && isMissed ? MISSED : RUN_LOOKS[run.state],
    seconds: durationOf(run, now),
    lateSeconds: latenessOf(run),
    reason: reasonText(run.reason),
    count: run.covers?.count ?? 1,
  };
}

function durationOf(run: RunSummary, now: number): number | null {
  if (run.duration_seconds !== null) return run.duration_seconds;
  if (run.started_at === null || run.finished_at !== null) return null;
  return Math.max(0, (now - instant(run.started_at)) / 1000);
}

/** Start delay of a scheduled run; null for other runs. */
export function latenessOf(run: Pick<RunSummary, "due" | "started_at" | "origin">): number | null {
  if (run.due === null || run.started_at === null || run.origin !== "scheduled") return null;
  return Math.max(0, (instant(run.started_at) - instant(run.due)) / 1000);
}

/** Time span with padding at both ends; a single bar gets one hour. */
export function spanOf(bars: readonly Bar[]): Span {
  const [first, last] = [bars[0], bars[bars.length - 1]];
  if (first === undefined || last === undefined) return { from: 0, to: 1 };
  const [from, to] = [instant(first.at), instant(last.at)];
  const air = Math.max((to - from) * 0.02, 30 * 60_000 * (to === from ? 1 : 0), 1_000);
  return { from: Math.floor(from - air), to: Math.ceil(to + air) };
}

export interface Scale {
  /** Logarithmic, for durations of different magnitudes. */
  log: boolean;
  most: number;
  least: number;
}

const SPREAD = 50;

export function scaleOf(bars: readonly Bar[]): Scale {
  const lengths = bars.flatMap((bar) => (bar.seconds === null ? [] : [bar.seconds])).filter((each) => each > 0);
  const most = lengths.reduce((top, each) => Math.max(top, each), 0) || 1;
  const least = lengths.reduce((low, each) => Math.min(low, each), most);
  return { log: most / least > SPREAD, most, least: Math.max(least, 0.001) };
}

/** Height from 0 to 1; a duration of zero has a minimum height. */
export function heightOf(seconds: number, scale: Scale): number {
  if (seconds <= 0) return 0.02;
  if (!scale.log) return Math.min(1, Math.max(0.02, seconds / scale.most));
  const [low, high] = [Math.log(scale.least / 2), Math.log(scale.most)];
  return Math.min(1, Math.max(0.02, (Math.log(seconds) - low) / (high - low)));
}

// Seconds. Each is at most 2.5 times the previous one, so one is always in the upper half.
const ROUNDS: readonly number[] = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30],
  ...[60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200],
  ...[86_400, 172_800, 345_600, 604_800],
];

/** Grid lines at round durations. */
export function gridOf(scale: Scale): number[] {
  const inside = ROUNDS.filter((each) => each <= scale.most && (!scale.log || each >= scale.least));
  if (!scale.log) return inside.filter((each) => each >= scale.most / 4).slice(-2);
  const step = Math.max(1, Math.ceil(inside.length / 4));
  return inside.filter((_, index) => (inside.length - 1 - index) % step === 0);
}

export interface Placed {
  bar: Bar;
  x: number;
  height: number;
}

const WIDEST = 14;
const THINNEST = 2;

/** Width of a bar, limited by typical gaps. */
export function barWidth(bars: readonly Bar[], span: Span, width: number): number {
  const gaps = bars
    .slice(1)
    .map((bar, index) => position(instant(bar.at), span, width) - position(instant(bars[index]!.at), span, width));
  const sorted = gaps.filter((gap) => gap > 0).sort((one, other) => one - other);
  const typical = sorted[Math.floor(sorted.length / 4)] ?? WIDEST;
  return Math.min(WIDEST, Math.max(THINNEST, Math.floor(typical * 0.7)));
}

export function placed(bars: readonly Bar[], span: Span, width: number, height: number): Placed[] {
  const scale = scaleOf(bars);
  return bars.map((bar) => ({
    bar,
    x: position(instant(bar.at), span, width),
    height: bar.seconds === null ? 0 : heightOf(bar.seconds, scale) * height,
  }));
}

/** Return the nearest bar within a distance of the pointer. */
export function nearest(places: readonly Placed[], x: number, within: number): number | null {
  let found: number | null = null;
  for (const [index, place] of places.entries()) {
    const far = Math.abs(place.x - x);
    if (far <= within && (found === null || far < Math.abs(places[found]!.x - x))) found = index;
  }
  return found;
}

/** Text of a bar: state, reason, duration and delay. */
export function barWords(bar: Bar): string {
  return [
    bar.count > 1 ? `${bar.look.word} × ${bar.count}` : bar.look.word,
    bar.reason,
    bar.seconds === null ? null : `duration ${durationText(bar.seconds)}`,
    bar.lateSeconds === null ? null : bar.lateSeconds < 1 ? "on time" : `delay ${durationText(bar.lateSeconds)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}
