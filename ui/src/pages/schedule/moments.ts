// An instant as RFC 3339 text with the offset of a zone: a person can change it, and the service need not guess.
import { startOfDay } from "../../time/axis";
import { isoDay, offsetText, two, wallTime } from "../../time/zones";

/** "2026-11-16T09:00:00+01:00"; whole seconds. */
export function momentText(at: number, zone: string): string {
  const seconds = Math.floor(at / 1000) * 1000;
  const wall = wallTime(seconds, zone);
  const date = `${String(wall.year).padStart(4, "0")}-${two(wall.month)}-${two(wall.day)}`;
  const clock = `${two(wall.hour)}:${two(wall.minute)}:${two(wall.second)}`;
  return `${date}T${clock}${offsetText(seconds, zone).replace("−", "-")}`;
}

const HALF_DAY = 12 * 3_600_000;

/** Around where a day of the zone begins: a place to ask the service from, whose answers say on which day they are. */
export function dayBegins(day: string, zone: string): number {
  const noon = Date.parse(`${day}T12:00:00Z`);
  const inside = [noon, noon - HALF_DAY, noon + HALF_DAY].find((at) => isoDay(at, zone) === day) ?? noon;
  return startOfDay(inside, zone);
}
