// The recent occurrences of a schedule: the look and text of each, a summary and a duration trend.
import type { Schemas } from "../api/client";
import { HELD, MISSED, RUN_LOOKS, SKIPPED, reasonText, type Look } from "../marks/outcomes";
import { durationText } from "../time/zones";
import { inSentence, ORIGINS } from "../words";

export type Recent = Schemas["RecentOccurrence"];

export const MOST_RECENT = 30;
const FIRED: Look = { word: "Fired (run deleted)", tone: "quiet", shape: "dot" };
const OUTCOMES: Readonly<Record<string, Look>> = { fired: FIRED, held: HELD, skipped: SKIPPED, missed: MISSED };

/** The state of its run, or the decision if it has none. */
export function recentLook({ outcome, state }: Pick<Recent, "outcome" | "state">): Look {
  return (state === null ? OUTCOMES[outcome] : RUN_LOOKS[state]) ?? FIRED;
}

/** "Failed · Manual · duration 12 s · delay 3 s". */
export function recentText(each: Recent): string {
  const parts = [
    each.count > 1 ? `${each.count.toLocaleString("en")} ${inSentence(recentLook(each).word)}` : recentLook(each).word,
  ];
  const why = reasonText(each.reason);
  if (why) parts.push(why);
  if (each.origin === "manual") parts.push(ORIGINS.manual);
  if (each.origin === "backfill") parts.push(ORIGINS.backfill);
  if (each.duration_seconds !== null) parts.push(`duration ${durationText(each.duration_seconds)}`);
  if (each.late_seconds !== null && each.late_seconds >= 1) parts.push(`delay ${durationText(each.late_seconds)}`);
  return parts.join(" · ");
}

/** "Last 12: 9 succeeded, 2 skipped, 1 failed", the most frequent first. */
export function recentSummary(recent: readonly Recent[]): string {
  if (recent.length === 0) return "No occurrences yet";
  const counts = new Map<string, number>();
  for (const each of recent) {
    const { word } = recentLook(each);
    counts.set(word, (counts.get(word) ?? 0) + each.count);
  }
  const texts = [...counts]
    .sort((one, other) => other[1] - one[1])
    .map(([word, many]) => `${many.toLocaleString("en")} ${inSentence(word)}`);
  return `Last ${recent.length}: ${texts.join(", ")}`;
}

export interface Trend {
  /** The path of the line. */
  line: string;
  /** The position of the newest one. */
  last: { x: number; y: number };
  newest: number;
  median: number;
  count: number;
}

/** The durations of the runs as a line below their marks; null = no run has ended. */
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

/** The index of the nearest mark. */
export function indexAt(x: number, slot: number, count: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor(x / slot)));
}
