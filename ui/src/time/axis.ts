// The marks of a time axis at whole local hours or days of a zone, also across clock changes.
import { clockText, dayText, monthText, offsetMinutes, wallTime } from "./zones";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The step of a calendar month. */
const MONTH = 30 * DAY;

export interface Span {
  from: number;
  to: number;
}

export interface AxisMark {
  at: number;
  /** The first mark of a local day, labelled with its date. */
  isDay: boolean;
  /** A mark of a month, labelled with its year. */
  isMonth: boolean;
  /** The clock change since the previous mark, in minutes; negative = back, 0 = none. */
  shifted: number;
}

const STEPS: readonly number[] = [
  SECOND,
  2 * SECOND,
  5 * SECOND,
  10 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  MONTH,
  3 * MONTH,
  6 * MONTH,
  12 * MONTH,
  24 * MONTH,
  60 * MONTH,
  120 * MONTH,
];

/** The smallest step whose labels fit. */
export function stepFor(span: Span, most: number): number {
  const length = span.to - span.from;
  return STEPS.find((step) => length / step <= most) ?? STEPS[STEPS.length - 1]!;
}

/** Marks at local times that are whole multiples of the step since local midnight, or at the first days of months. */
export function axisMarks(span: Span, zone: string, most: number): AxisMark[] {
  const step = stepFor(span, most);
  const marks: AxisMark[] = [];
  let before = offsetMinutes(span.from, zone);
  for (
    let at = firstMark(span.from, step, zone);
    at < span.to && marks.length < 10 * most;
    at = nextMark(at, step, zone)
  ) {
    const offset = offsetMinutes(at, zone);
    marks.push({ at, isDay: step >= DAY || isFirstOfDay(at, zone), isMonth: step >= MONTH, shifted: offset - before });
    before = offset;
  }
  return marks;
}

/** The label of a mark: "14:00", "Mon 16 Nov" or "Nov 2026". */
export function axisText({ at, isDay, isMonth }: AxisMark, zone: string): string {
  if (isMonth) return monthText(at, zone);
  return isDay ? dayText(at, zone).replace(/ \d{4}$/, "") : clockText(at, zone);
}

/** The start of a local day; if midnight does not exist, the first existing minute. */
function isFirstOfDay(at: number, zone: string): boolean {
  return wallTime(at - 1, zone).day !== wallTime(at, zone).day;
}

function firstMark(from: number, step: number, zone: string): number {
  return nextMark(from - 1, step < MONTH ? Math.min(step, DAY) : step, zone);
}

function localFloor(at: number, step: number, zone: string): number {
  const offset = offsetMinutes(at, zone) * MINUTE;
  return Math.floor((at + offset) / step) * step - offset;
}

function nextMark(at: number, step: number, zone: string): number {
  if (step >= MONTH) return nextMonth(at, step / MONTH, zone);
  return step >= DAY ? nextDay(at, step / DAY, zone) : nextClock(at, step, zone);
}

/** The first day of a month whose number, counted from year 0, is a multiple. */
function nextMonth(at: number, months: number, zone: string): number {
  const { year, month } = wallTime(at, zone);
  const next = (Math.floor((12 * year + month - 1) / months) + 1) * months;
  const noon = Date.UTC(Math.floor(next / 12), next % 12, 1, 12);
  return startOfDay(noon - offsetMinutes(noon, zone) * MINUTE, zone);
}

function nextDay(at: number, days: number, zone: string): number {
  let next = at;
  for (let day = 0; day < days; day += 1) {
    const begun = startOfDay(next, zone);
    next = startOfDay(begun + 26 * HOUR, zone, begun);
  }
  return next;
}

/** Advance by hours (or less) until the local time is a multiple of the step or a day begins. */
function nextClock(at: number, step: number, zone: string): number {
  const small = Math.min(step, HOUR);
  for (let next = localFloor(at, small, zone) + small, tries = 0; ; tries += 1) {
    const snapped = localFloor(next, small, zone);
    const candidate = snapped > at ? snapped : next;
    const { hour, minute, second } = wallTime(candidate, zone);
    const sinceMidnight = hour * HOUR + minute * MINUTE + second * SECOND;
    if (sinceMidnight % step === 0 || isFirstOfDay(candidate, zone) || tries > 48) return candidate;
    next = candidate + small;
  }
}

/** The first instant of the local day of `at`; after `after` if given. */
export function startOfDay(at: number, zone: string, after = -Infinity): number {
  const wall = wallTime(at, zone);
  const guess = Date.UTC(wall.year, wall.month - 1, wall.day);
  // One of the offsets at or around the guess applies at midnight.
  const candidates = [at, guess - DAY, guess, guess + DAY].map((near) => guess - offsetMinutes(near, zone) * MINUTE);
  const fitting = candidates.filter((each) => {
    const there = wallTime(each, zone);
    return there.day === wall.day && there.month === wall.month && wallTime(each - 1, zone).day !== wall.day;
  });
  const found = fitting.length > 0 ? Math.min(...fitting) : Math.min(...candidates);
  return found > after ? found : at;
}

/** The position of an instant on a line of this width. */
export function position(at: number, span: Span, width: number): number {
  return ((at - span.from) / (span.to - span.from)) * width;
}

export const SHORTEST_SPAN = 5 * MINUTE;
/** The service returns at most 31 days; a quarter of that is still legible. */
export const LONGEST_SPAN = 7 * DAY;

/** Zoom in (factor below 1) or out; the instant under the pointer stays in place. */
export function zoomed(span: Span, factor: number, around: number): Span {
  const length = span.to - span.from;
  const next = Math.min(LONGEST_SPAN, Math.max(SHORTEST_SPAN, length * factor));
  const share = (around - span.from) / length;
  const from = Math.round(around - share * next);
  return { from, to: from + Math.round(next) };
}

export function panned(span: Span, share: number): Span {
  const by = Math.round((span.to - span.from) * share);
  return { from: span.from + by, to: span.to + by };
}
