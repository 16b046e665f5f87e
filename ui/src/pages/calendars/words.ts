// The effect and the coverage of a calendar as text, and its dates.
import type { Schemas } from "../../api/client";

type Calendar = Schemas["Calendar"];

export function meaningOf(calendar: Pick<Calendar, "kind" | "rule" | "dates">): string {
  const days = [calendar.rule ?? "", calendar.dates.length > 0 ? many(calendar.dates.length, "date") : ""].filter(
    Boolean,
  );
  const dates = days.join(" and ") || "no dates";
  return calendar.kind === "only_dates" ? `Includes only ${dates}` : `Excludes ${dates}`;
}

/** The covered period, such as "2026-01-01 to 2026-12-25"; weekdays have no end. */
export function coverageOf(calendar: Pick<Calendar, "covers" | "covered_until" | "rule">): string {
  const [first, last] = calendar.covers ?? [];
  if (first !== undefined && last !== undefined) return first === last ? first : `${first} to ${last}`;
  if (calendar.covered_until) return `Until ${calendar.covered_until}`;
  return calendar.rule === null ? "No dates" : "Every year";
}

/** The names (empty if unnamed) of the listed dates of a year, with the dates of the draft in place of the saved ones. */
export function listedDays(
  calendar: Pick<Calendar, "days" | "dates">,
  dates: readonly string[],
  year: number,
): Record<string, string> {
  const [kept, drafted] = [new Set(calendar.dates), new Set(dates)];
  const start = `${String(year).padStart(4, "0")}-`;
  const own = dates.filter((date) => date.startsWith(start)).map((date) => [date, ""] as const);
  const found = (calendar.days ?? []).filter(
    (day) => day.date.startsWith(start) && (!kept.has(day.date) || drafted.has(day.date)),
  );
  return Object.fromEntries([...own, ...found.map((day) => [day.date, day.name ?? ""] as const)]);
}

/** Return whether the rule lists the date, so that it cannot be removed. */
export function isOfRule(calendar: Pick<Calendar, "days" | "dates">, date: string): boolean {
  return !calendar.dates.includes(date) && (calendar.days ?? []).some((day) => day.date === date);
}

/** Parse dates separated by lines, commas or blanks, and report invalid ones. */
export function readDates(text: string): { dates: string[]; wrong: string[] } {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  const good = words.filter(isDate);
  return { dates: [...new Set(good)].sort(), wrong: words.filter((word) => !isDate(word)) };
}

function isDate(word: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(word)) return false;
  const day = new Date(`${word}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(word);
}

export function toggled(dates: readonly string[], date: string): string[] {
  return dates.includes(date) ? dates.filter((each) => each !== date) : [...dates, date].sort();
}

function many(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
