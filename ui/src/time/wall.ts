// Which instant somebody means who writes a day and an hour: the reverse of how instants are shown, in the same zone.
//
// It only reads what was typed; what the service makes of the instant is the service's business.
import { isKnown, offsetMinutes } from "./zones";

const WRITTEN = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?$/;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Written so that no clock there shows it, or in no way that is a time, it is none; shown twice, it is the earlier. */
export function instantOfWall(text: string, zone: string): number | null {
  const found = WRITTEN.exec(text);
  if (found === null || !isKnown(zone)) return null;
  const [year, month, day, hour, minute, second] = found.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const asUtc = Date.UTC(year, month - 1, day, hour, minute, second);
  const back = new Date(asUtc);
  if (
    back.getUTCMonth() !== month - 1 ||
    back.getUTCDate() !== day ||
    back.getUTCHours() !== hour ||
    back.getUTCMinutes() !== minute
  )
    return null;
  // The offsets around it: at most one change lies between a day before and a day after.
  const candidates = [offsetMinutes(asUtc - DAY_MS, zone), offsetMinutes(asUtc + DAY_MS, zone)].map(
    (offset) => asUtc - offset * MINUTE_MS,
  );
  const shown = candidates.filter((ms) => ms + offsetMinutes(ms, zone) * MINUTE_MS === asUtc);
  return shown.length === 0 ? null : Math.min(...shown);
}

/** As the service reads it: whole seconds, in UTC. */
export function rfc3339(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
