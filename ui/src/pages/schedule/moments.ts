// An instant as RFC 3339 text with the offset of a zone: a person can change it, and the service need not guess.
import { offsetText, two, wallTime } from "../../time/zones";

/** "2026-11-16T09:00:00+01:00"; whole seconds. */
export function momentText(at: number, zone: string): string {
  const seconds = Math.floor(at / 1000) * 1000;
  const wall = wallTime(seconds, zone);
  const date = `${String(wall.year).padStart(4, "0")}-${two(wall.month)}-${two(wall.day)}`;
  const clock = `${two(wall.hour)}:${two(wall.minute)}:${two(wall.second)}`;
  return `${date}T${clock}${offsetText(seconds, zone).replace("−", "-")}`;
}
