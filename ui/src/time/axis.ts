// Where the marks of a time axis stand: at whole local hours or days of a zone, also where the clock is put forward or back.
import { offsetMinutes, wallTime } from "./zones";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export interface Span {
  from: number;
  to: number;
}

export interface AxisMark {
  at: number;
  /** The first of a local day: it is written with its date. */
  isDay: boolean;
  /** How far the clock was put forward (or back, if negative) since the mark before, in minutes; 0 = not at all. */
  shifted: number;
}

const STEPS: readonly number[] = [
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
];

/** The smallest step that leaves room for the texts. */
export function stepFor(span: Span, most: number): number {
  const length = span.to - span.from;
  return STEPS.find((step) => length / step <= most) ?? STEPS[STEPS.length - 1]!;
}

/** Marks at local times that are whole multiples of the step since local midnight. */
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
    const wall = wallTime(at, zone);
    const isDay = step >= DAY || isFirstOfDay(at, zone, wall.hour, wall.minute);
    marks.push({ at, isDay, shifted: offset - before });
    before = offset;
  }
  return marks;
}

/** Midnight does not exist on some days of some zones: the day then begins with its first minute that does. */
function isFirstOfDay(at: number, zone: string, hour: number, minute: number): boolean {
  return (hour === 0 && minute === 0) || wallTime(at - 1, zone).day !== wallTime(at, zone).day;
}

function firstMark(from: number, step: number, zone: string): number {
  const floor = step >= DAY ? startOfDay(from, zone) : localFloor(from, Math.min(step, HOUR), zone);
  return floor >= from ? floor : nextMark(floor, step, zone);
}

function localFloor(at: number, step: number, zone: string): number {
  const offset = offsetMinutes(at, zone) * MINUTE;
  return Math.floor((at + offset) / step) * step - offset;
}

/** Goes on by hours (or less), until the local clock shows a multiple of the step. */
function nextMark(at: number, step: number, zone: string): number {
  if (step >= DAY) {
    let next = at;
    for (let days = 0; days < step / DAY; days += 1) next = startOfDay(next + 26 * HOUR, zone, next);
    return next;
  }
  const small = Math.min(step, HOUR);
  for (let next = localFloor(at, small, zone) + small, tries = 0; ; tries += 1) {
    const snapped = localFloor(next, small, zone);
    const candidate = snapped > at ? snapped : next;
    const wall = wallTime(candidate, zone);
    const sinceMidnight = wall.hour * HOUR + wall.minute * MINUTE;
    if (sinceMidnight % step === 0 || tries > 48) return candidate;
    next = candidate + small;
  }
}

/** The first instant of the local day in which `at` lies; after `after` where that is given. */
export function startOfDay(at: number, zone: string, after = -Infinity): number {
  const wall = wallTime(at, zone);
  const guess = Date.UTC(wall.year, wall.month - 1, wall.day);
  // Offsets at the guess and around it: one of them is the one that holds at midnight.
  const candidates = [at, guess - DAY, guess, guess + DAY].map((near) => guess - offsetMinutes(near, zone) * MINUTE);
  const fitting = candidates.filter((each) => {
    const there = wallTime(each, zone);
    return there.day === wall.day && there.month === wall.month && wallTime(each - 1, zone).day !== wall.day;
  });
  const found = fitting.length > 0 ? Math.min(...fitting) : Math.min(...candidates);
  return found > after ? found : at;
}

/** Where an instant stands on a line of this width. */
export function position(at: number, span: Span, width: number): number {
  return ((at - span.from) / (span.to - span.from)) * width;
}

const SHORTEST = 5 * MINUTE;
const LONGEST = 31 * DAY;

/** Nearer by a factor below 1, farther above it; the instant under the pointer stays where it is. */
export function zoomed(span: Span, factor: number, around: number): Span {
  const length = span.to - span.from;
  const next = Math.min(LONGEST, Math.max(SHORTEST, length * factor));
  const share = (around - span.from) / length;
  const from = Math.round(around - share * next);
  return { from, to: from + Math.round(next) };
}

export function panned(span: Span, share: number): Span {
  const by = Math.round((span.to - span.from) * share);
  return { from: span.from + by, to: span.to + by };
}
