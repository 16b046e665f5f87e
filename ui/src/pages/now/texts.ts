// The text of a mark: its outcome, its time in the zones of the viewer and the schedule, its duration and its reason.
import { reasonText } from "../../marks/outcomes";
import { clockText, dayText, durationText, isoDay, offsetMinutes } from "../../time/zones";
import { zoneLabel } from "../../parts/When";
import { wordsOf, type Group, type Row } from "./groups";

/** Return the lines of the tooltip: outcome, time, reason, duration and detail. */
export function markText(group: Pick<Group, "rows" | "count" | "worst">, zone: string | null, viewer: string): string {
  // By time: a run that began before the view has the place of the first mark, but not the first row.
  const byTime = group.rows.toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at));
  const [first, last] = [byTime[0]!, byTime.at(-1)!];
  const lines = [wordsOf(group), clockLine(first.at, last.at, viewer)];
  if (zone !== null && offsetMinutes(Date.parse(first.at), zone) !== offsetMinutes(Date.parse(first.at), viewer)) {
    lines.push(`${clockLine(first.at, last.at, zone)} ${zoneLabel(first.at, zone)}`);
  }
  const why = reasonText(group.worst.reason);
  if (why) lines.push(why);
  if (group.rows.length === 1) lines.push(...tookLines(first), ...(first.sentence ? [first.sentence] : []));
  return lines.join("\n");
}

function clockLine(first: string, last: string, zone: string): string {
  const begin = `${dayText(first, zone).replace(/ \d{4}$/, "")}, ${clockText(first, zone)}`;
  if (first === last) return begin;
  const end = clockText(last, zone);
  return isoDay(first, zone) === isoDay(last, zone)
    ? `${begin} – ${end}`
    : `${begin} – ${dayText(last, zone).replace(/ \d{4}$/, "")}, ${end}`;
}

function tookLines(row: Row): string[] {
  if (!row.started_at || !row.finished_at) return [];
  return [`Duration: ${durationText((Date.parse(row.finished_at) - Date.parse(row.started_at)) / 1_000)}`];
}
