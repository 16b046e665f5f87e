// Format instants: in a zone, with an offset, and relative to now.
import { useSyncExternalStore } from "react";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + JSON.stringify(options);
  let found = formats.get(key);
  if (found === undefined) {
    found = new Intl.DateTimeFormat("en-GB", { timeZone: known(zone), hourCycle: "h23", ...options });
    formats.set(key, found);
  }
  return found;
}

const knownZones = new Map<string, boolean>();

/** The service's list of zones may be newer than the browser's. */
export function isKnown(zone: string): boolean {
  let found = knownZones.get(zone);
  if (found === undefined) {
    try {
      new Intl.DateTimeFormat("en-GB", { timeZone: zone });
      found = true;
    } catch {
      found = false;
    }
    knownZones.set(zone, found);
  }
  return found;
}

function known(zone: string): string {
  return isKnown(zone) ? zone : "UTC";
}

export interface WallTime {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const WALL: Intl.DateTimeFormatOptions = {
  year: "numeric",
  month: "numeric",
  day: "numeric",
  hour: "numeric",
  minute: "numeric",
  second: "numeric",
};

/** The local date and time at this instant. */
export function wallTime(ms: number, zone: string): WallTime {
  const parts = Object.fromEntries(
    format(zone, WALL)
      .formatToParts(ms)
      .map((part) => [part.type, Number(part.value)]),
  );
  return parts as unknown as WallTime;
}

/** Minutes east of UTC at this instant. */
export function offsetMinutes(ms: number, zone: string): number {
  const wall = wallTime(ms, zone);
  const asUtc = Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second);
  return Math.round((asUtc - Math.floor(ms / 1000) * 1000) / 60_000);
}

/** "+02:00", or "Z". */
export function offsetText(ms: number, zone: string): string {
  const minutes = offsetMinutes(ms, zone);
  if (minutes === 0) return "Z";
  const far = Math.abs(minutes);
  return `${minutes < 0 ? "−" : "+"}${two(Math.floor(far / 60))}:${two(far % 60)}`;
}

/** "Mon 16 Nov 2026, 09:00:00"; seconds only where there are some. */
export function dateTimeText(at: string | number, zone: string): string {
  return `${dayText(at, zone)}, ${clockText(at, zone)}`;
}

export function dayText(at: string | number, zone: string): string {
  return format(zone, { weekday: "short", day: "numeric", month: "short", year: "numeric" })
    .format(instant(at))
    .replace(",", "");
}

/** "Nov 2026". */
export function monthText(at: string | number, zone: string): string {
  return format(zone, { month: "short", year: "numeric" }).format(instant(at));
}

export function clockText(at: string | number, zone: string): string {
  const wall = wallTime(instant(at), zone);
  return `${two(wall.hour)}:${two(wall.minute)}${wall.second === 0 ? "" : `:${two(wall.second)}`}`;
}

/** "2026-11-16": the day on which it is there. */
export function isoDay(at: string | number, zone: string): string {
  const wall = wallTime(instant(at), zone);
  return `${wall.year}-${two(wall.month)}-${two(wall.day)}`;
}

/** Return whether two zones have the same local time at this instant. */
export function sameClock(at: string | number, one: string, other: string): boolean {
  return offsetMinutes(instant(at), one) === offsetMinutes(instant(at), other);
}

export function instant(at: string | number): number {
  return typeof at === "number" ? at : Date.parse(at);
}

const STEPS: readonly [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Beyond this, seconds are omitted. */
const SECONDS_COUNT_BELOW = 600;

/** "in 3 h 5 min", "2 d ago", "now": the two largest units, rounded down, so nothing is nearer than it says. */
export function relativeText(at: string | number, now: number): string {
  const seconds = Math.trunc((instant(at) - now) / 1000);
  if (seconds === 0) return "now";
  const far = Math.abs(seconds);
  const text = durationText(far < SECONDS_COUNT_BELOW ? far : far - (far % 60));
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}

export function durationText(seconds: number): string {
  if (seconds < 1) return seconds <= 0 ? "0 s" : `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  const whole = Math.floor(seconds);
  const first = STEPS.findIndex(([size]) => whole >= size);
  const texts: string[] = [];
  let left = whole;
  for (const [size, unit] of STEPS.slice(first, first + 2)) {
    const many = Math.floor(left / size);
    left -= many * size;
    if (many > 0) texts.push(`${many} ${unit}`);
  }
  return texts.join(" ");
}

export function two(value: number): string {
  return String(value).padStart(2, "0");
}

// ── the time zone of the viewer ───────────────────────────────────────────────────────────────────────────────

const ZONE_KEY = "horarium.zone";
const changes = new Set<() => void>();

export function browserZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

function chosenZone(): string {
  const kept = localStorage.getItem(ZONE_KEY);
  return kept !== null && isKnown(kept) ? kept : browserZone();
}

export function chooseZone(zone: string | null): void {
  if (zone === null) localStorage.removeItem(ZONE_KEY);
  else localStorage.setItem(ZONE_KEY, zone);
  for (const each of changes) each();
}

/** The viewer's zone: the browser's, unless another was chosen. */
export function useViewerZone(): string {
  return useSyncExternalStore((changed) => {
    changes.add(changed);
    return () => changes.delete(changed);
  }, chosenZone);
}
