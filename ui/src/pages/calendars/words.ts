// What a calendar means, in words, and how long its dates last.
import type { Schemas } from "../../api/client";

type Calendar = Schemas["Calendar"];

export function meaningOf(calendar: Pick<Calendar, "kind" | "rule" | "dates">): string {
  const days = [
    calendar.rule ? `days of ${calendar.rule}` : "",
    calendar.dates.length > 0 ? many(calendar.dates.length, "date") : "",
  ].filter(Boolean);
  const said = days.join(" and ") || "no days";
  return calendar.kind === "only_dates" ? `runs only on ${said}` : `does not run on ${said}`;
}

/** "2026-01-01 to 2026-12-25", "until 2026-12-31"; weekdays have no end. */
export function coverageOf(calendar: Pick<Calendar, "covers" | "covered_until" | "rule">): string {
  const [first, last] = calendar.covers ?? [];
  if (first !== undefined && last !== undefined) return first === last ? first : `${first} to ${last}`;
  if (calendar.covered_until) return `until ${calendar.covered_until}`;
  return calendar.rule === null ? "no dates yet" : "every year";
}

/** Why each day of a year is listed: what the service found in it, with the draft's dates in place of those that are kept. */
export function listedDays(
  calendar: Pick<Calendar, "days" | "dates">,
  dates: readonly string[],
  year: number,
): Record<string, string> {
  const [kept, drafted] = [new Set(calendar.dates), new Set(dates)];
  const start = `${String(year).padStart(4, "0")}-`;
  const own = dates.filter((date) => date.startsWith(start)).map((date) => [date, "listed"] as const);
  const found = (calendar.days ?? []).filter(
    (day) => day.date.startsWith(start) && (!kept.has(day.date) || drafted.has(day.date)),
  );
  return Object.fromEntries([...own, ...found.map((day) => [day.date, day.name ?? "listed"] as const)]);
}

/** Whether the rule lists the day: then it stays, whatever the dates are. */
export function isOfRule(calendar: Pick<Calendar, "days" | "dates">, date: string): boolean {
  return !calendar.dates.includes(date) && (calendar.days ?? []).some((day) => day.date === date);
}

/** Dates as people paste them: one a line, or between commas and blanks; what is no date is told, not guessed. */
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
