// The visible hours, stored in the address. Without a start the view follows the clock.
import { LONGEST_SPAN, SHORTEST_SPAN, type Span } from "../../time/axis";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const SHORTEST_HOURS = SHORTEST_SPAN / HOUR;
const LONGEST_HOURS = LONGEST_SPAN / HOUR;
export const DEFAULT_HOURS = 12;
/** The position of now in a following view: more space for the future. */
export const DEFAULT_SHARE = 0.4;

export const PRESETS: readonly (readonly [hours: number, text: string])[] = [
  [1, "1 h"],
  [3, "3 h"],
  [6, "6 h"],
  [12, "12 h"],
  [24, "24 h"],
  [72, "3 d"],
  [168, "7 d"],
];

/** `from`: start of a fixed view. `share`: position of now in a following view, as part of the width. */
export interface View {
  hours: number;
  from: number | null;
  share: number;
}

/** Parse the address; invalid values are ignored. */
export function viewOf(search: Readonly<Record<string, unknown>>): View {
  const hours = numberOf(search["hours"]);
  const share = numberOf(search["share"]);
  const from = typeof search["from"] === "string" ? Date.parse(search["from"]) : NaN;
  return {
    hours: hours === null || hours <= 0 ? DEFAULT_HOURS : clamped(hours, SHORTEST_HOURS, LONGEST_HOURS),
    from: Number.isFinite(from) && Math.abs(from) < 8e15 ? from : null,
    share: share === null ? DEFAULT_SHARE : clamped(share, 0, 1),
  };
}

/** The address parameters of a view. */
export function searchOf(view: View): { hours: number; from?: string; share?: number } {
  const hours = Math.round(view.hours * 10_000) / 10_000;
  const share = Math.round(view.share * 1_000) / 1_000;
  return {
    hours,
    from:
      view.from === null
        ? undefined
        : new Date(Math.round(view.from / 1000) * 1000).toISOString().replace(".000Z", "Z"),
    share: view.from !== null || share === DEFAULT_SHARE ? undefined : share,
  };
}

export function spanOf(view: View, now: number): Span {
  const length = view.hours * HOUR;
  const from = view.from ?? now - view.share * length;
  return { from: Math.round(from), to: Math.round(from + length) };
}

/** The view of a span: it follows now if it contains it, else it is fixed. */
export function viewFor(span: Span, now: number): View {
  const length = span.to - span.from;
  const hours = clamped(length / HOUR, SHORTEST_HOURS, LONGEST_HOURS);
  const share = (now - span.from) / length;
  return share > 0 && share < 1 ? { hours, from: null, share } : { hours, from: span.from, share: DEFAULT_SHARE };
}

export function zoomedTo(view: View, hours: number, now: number): View {
  const length = clamped(hours, SHORTEST_HOURS, LONGEST_HOURS) * HOUR;
  if (view.from === null) return { ...view, hours: length / HOUR };
  const middle = view.from + (view.hours * HOUR) / 2;
  return viewFor({ from: middle - length / 2, to: middle + length / 2 }, now);
}

/** The instant under the pointer, rounded to the precision of a pixel. */
export function pointedAt(x: number, width: number, span: Span): number {
  const perPixel = (span.to - span.from) / Math.max(1, width);
  const unit = perPixel >= 10_000 ? MINUTE : 1_000;
  return Math.round((span.from + x * perPixel) / unit) * unit;
}

function numberOf(value: unknown): number | null {
  const found =
    typeof value === "number" ? value : typeof value === "string" && value.trim() !== "" ? Number(value) : NaN;
  return Number.isFinite(found) ? found : null;
}

function clamped(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
