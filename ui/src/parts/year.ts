// The layout of a year in months and weeks, and the text of each day. The service computes the instants.
import { reasonText } from "../marks/outcomes";
import { two } from "../time/zones";

/** The fires and skips of one day; days without any are omitted. */
export interface YearDay {
  date: string;
  fires: number;
  skips: number;
  reasons: Readonly<Record<string, number>>;
  /** The detail of the first skip. */
  detail?: string | null;
}

export interface Month {
  /** 1 to 12. */
  month: number;
  name: string;
  /** Weeks from Monday to Sunday; null where the day belongs to another month. */
  weeks: readonly (readonly (string | null)[])[];
}

export const MONTH_NAMES = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] as const;

const DAY_MS = 86_400_000;

export function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

export function daysIn(year: number, month: number): number {
  return month === 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** 0 is Monday. */
export function weekdayOf(date: string): number {
  return (new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7;
}

/** The next date. */
export function dayAfter(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}

export function isoDate(year: number, month: number, day: number): string {
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
}

export function monthsOf(year: number): Month[] {
  return MONTH_NAMES.map((name, index) => ({ month: index + 1, name, weeks: weeksOf(year, index + 1) }));
}

function weeksOf(year: number, month: number): (string | null)[][] {
  const before = weekdayOf(isoDate(year, month, 1));
  const days = Array.from({ length: daysIn(year, month) }, (_, index) => isoDate(year, month, index + 1));
  const cells: (string | null)[] = [...Array<null>(before).fill(null), ...days];
  while (cells.length % 7 !== 0) cells.push(null);
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}

/** The date that many days away, limited to the same year. */
export function moved(date: string, days: number): string {
  const year = date.slice(0, 4);
  const next = new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
  if (next.startsWith(`${year}-`)) return next;
  return days < 0 ? `${year}-01-01` : `${year}-12-31`;
}

/** The same day of another month, or the last day of that month. */
export function movedByMonths(date: string, months: number): string {
  const [year, month, day] = date.split("-").map(Number) as [number, number, number];
  const next = Math.min(12, Math.max(1, month + months));
  return isoDate(year, next, Math.min(day, daysIn(year, next)));
}

const KEYS: Readonly<Record<string, (date: string) => string>> = {
  ArrowLeft: (date) => moved(date, -1),
  ArrowRight: (date) => moved(date, 1),
  ArrowUp: (date) => moved(date, -7),
  ArrowDown: (date) => moved(date, 7),
  PageUp: (date) => movedByMonths(date, -1),
  PageDown: (date) => movedByMonths(date, 1),
  Home: (date) => `${date.slice(0, 8)}01`,
  End: (date) =>
    isoDate(
      Number(date.slice(0, 4)),
      Number(date.slice(5, 7)),
      daysIn(Number(date.slice(0, 4)), Number(date.slice(5, 7))),
    ),
};

/** The date that a key moves to; null for other keys. */
export function dayByKey(date: string, key: string): string | null {
  return KEYS[key]?.(date) ?? null;
}

export type Level = 0 | 1 | 2 | 3 | 4;

/** The fewest and the most fires of a day, among days with fires. */
export interface Range {
  least: number;
  most: number;
}

export function rangeOf(days: readonly YearDay[]): Range {
  const counts = days.map((day) => day.fires).filter((fires) => fires > 0);
  return {
    least: counts.reduce((low, each) => Math.min(low, each), Infinity),
    most: counts.reduce((top, each) => Math.max(top, each), 0),
  };
}

/** The color level of a day on a logarithmic scale, as days may have 1 to 86,400 fires. Equal days share one level. */
export function levelOf(fires: number, { least, most }: Range): Level {
  if (fires <= 0) return 0;
  if (least >= most) return 2;
  return (1 + Math.min(3, Math.floor((4 * Math.log(fires / least)) / Math.log(most / least + 0.01)))) as Level;
}

const MOST_REASONS = 5;

/** The effect of the dates that a calendar lists; other dates have the opposite. */
export type Listed = "closed" | "open";

export const LISTED_TEXTS: Readonly<Record<Listed, string>> = { closed: "Excluded", open: "Included" };

/** "Mon 16 November 2026: 3 fires, 1 skipped (Excluded by calendar)"; for a calendar "…: excluded (Christmas Day)". */
export function dayWords(date: string, day: YearDay | undefined, reason?: string, listed?: Listed): string {
  const [year, month, number] = date.split("-").map(Number) as [number, number, number];
  const head = `${WEEKDAYS[weekdayOf(date)]!.slice(0, 3)} ${number} ${MONTH_NAMES[month - 1]!} ${year}`;
  const effect = LISTED_TEXTS[listed ?? "closed"].toLowerCase();
  const said = [
    ...(day === undefined ? [] : happenings(day)),
    ...(reason === undefined ? [] : [`${effect}${reason ? ` (${reason})` : ""}`]),
  ];
  const other = listed === undefined ? "no fires" : LISTED_TEXTS[listed === "open" ? "closed" : "open"].toLowerCase();
  return `${head}: ${said.length > 0 ? said.join(", ") : other}`;
}

function happenings(day: YearDay): string[] {
  const fires = day.fires > 0 ? [`${counted(day.fires)} ${day.fires === 1 ? "fire" : "fires"}`] : [];
  const why = day.detail ? `: ${day.detail}` : "";
  return day.skips > 0 ? [...fires, `${counted(day.skips)} skipped${reasonsOf(day)}${why}`] : fires;
}

function reasonsOf(day: YearDay): string {
  const reasons = Object.entries(day.reasons).sort(([, one], [, other]) => other - one);
  if (reasons.length === 0) return "";
  const texts = reasons
    .slice(0, MOST_REASONS)
    .map(([reason, many]) => `${reasonText(reason)}${reasons.length > 1 ? ` × ${many}` : ""}`);
  return ` (${texts.join("; ")}${reasons.length > MOST_REASONS ? "; …" : ""})`;
}

export function counted(value: number): string {
  return value.toLocaleString("en-GB");
}

/** The totals of a year. */
export function yearWords(year: number, days: readonly YearDay[], bounded: boolean): string {
  const fires = days.reduce((sum, day) => sum + day.fires, 0);
  const skips = days.reduce((sum, day) => sum + day.skips, 0);
  const least = bounded ? "at least " : "";
  return `${year}: ${least}${counted(fires)} ${fires === 1 ? "fire" : "fires"}, ${counted(skips)} skipped`;
}
