// What the strip of the last occurrences shows: for each a look and a sentence, for all a summary and a trend.
import type { Schemas } from "../api/client";
import { HELD, MISSED, RUN_LOOKS, SKIPPED, reasonText, type Look } from "../marks/outcomes";
import { durationText } from "../time/zones";

export type Recent = Schemas["RecentOccurrence"];

export const MOST_RECENT = 30;
const FIRED: Look = { word: "fired, its run is no longer kept", tone: "quiet", shape: "dot" };
const OUTCOMES: Readonly<Record<string, Look>> = { fired: FIRED, held: HELD, skipped: SKIPPED, missed: MISSED };

/** What its run is doing, where it has one; else what was decided. */
export function recentLook({ outcome, state }: Pick<Recent, "outcome" | "state">): Look {
  return (state === null ? OUTCOMES[outcome] : RUN_LOOKS[state]) ?? FIRED;
}

/** "failed · by hand · took 12 s · 3 s late"; when it was stands beside it. */
export function recentText(each: Recent): string {
  const parts = [
    each.count > 1 ? `${each.count.toLocaleString("en")} ${recentLook(each).word}` : recentLook(each).word,
  ];
  const why = reasonText(each.reason);
  if (why) parts.push(why);
  if (each.origin === "manual") parts.push("by hand");
  if (each.origin === "backfill") parts.push("backfilled");
  if (each.duration_seconds !== null) parts.push(`took ${durationText(each.duration_seconds)}`);
  if (each.late_seconds !== null && each.late_seconds >= 1) parts.push(`${durationText(each.late_seconds)} late`);
  return parts.join(" · ");
}

/** "Last 12: 9 succeeded, 2 skipped, 1 failed", the most frequent first. */
export function recentSummary(recent: readonly Recent[]): string {
  if (recent.length === 0) return "Nothing has happened yet";
  const counts = new Map<string, number>();
  for (const each of recent) {
    const { word } = recentLook(each);
    counts.set(word, (counts.get(word) ?? 0) + each.count);
  }
  const texts = [...counts]
    .sort((one, other) => other[1] - one[1])
    .map(([word, many]) => `${many.toLocaleString("en")} ${word}`);
  return `Last ${recent.length}: ${texts.join(", ")}`;
}

export interface Trend {
  /** The path of the line. */
  line: string;
  /** Where the newest one is. */
  last: { x: number; y: number };
  newest: number;
  median: number;
  count: number;
}

/** How long runs took, each below its mark, from a base of none; null = not even one has ended. */
export function trendOf(
  recent: readonly Pick<Recent, "duration_seconds">[],
  slot: number,
  height: number,
): Trend | null {
  const known = recent.flatMap(({ duration_seconds: seconds }, index) =>
    isDuration(seconds) ? [{ seconds, index }] : [],
  );
  if (known.length === 0) return null;
  const sorted = known.map(({ seconds }) => seconds).sort((one, other) => one - other);
  const most = sorted.at(-1)!;
  const points = known.map(({ seconds, index }) => ({
    x: round((index + 0.5) * slot),
    y: round(height - 2 - (most === 0 ? 0 : (seconds / most) * (height - 4))),
  }));
  return {
    line: points.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join(""),
    last: points.at(-1)!,
    newest: known.at(-1)!.seconds,
    median: sorted[Math.floor((sorted.length - 1) / 2)]!,
    count: known.length,
  };
}

function isDuration(seconds: number | null): seconds is number {
  return seconds !== null && Number.isFinite(seconds) && seconds >= 0;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Which mark lies there; the nearest, also for whoever points beside them. */
export function indexAt(x: number, slot: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor(x / slot)));
}
