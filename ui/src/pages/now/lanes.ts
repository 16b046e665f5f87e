// The lanes of the timeline: rows or counts of each schedule, attention level and order.
import type { Schemas } from "../../api/client";
import { agendaLook } from "../../marks/outcomes";
import type { Row } from "./groups";

export type LaneSchedule = Schemas["AgendaSchedule"];
export type SentLane = Schemas["AgendaLane"];

/** The attention level; 0 is the most urgent. */
export type Attention = 0 | 1 | 2 | 3;
export const CALM: Attention = 3;

export const ATTENTION_TEXTS: Record<Attention, string> = {
  0: "Last run failed",
  1: "Awaiting approval or missed",
  2: "Failed or missed in this time range",
  3: "",
};

export interface Lane {
  id: string;
  rows: readonly Row[];
  /** Counts instead of rows if there are too many rows; null = all rows are present. */
  buckets: readonly Schemas["LaneBucket"][] | null;
  zone: string | null;
  name: string | null;
  /** Its name, or its id if another lane has the same name. */
  title: string;
  attention: Attention;
  /** The next occurrence that will fire, as far as this view knows. */
  next: string | null;
}

/** Schedules with occurrences in the view; `sent` null = take them from the rows. */
export function lanesOf(
  rows: readonly Row[],
  schedules: Readonly<Record<string, LaneSchedule>> = {},
  sent: readonly SentLane[] | null = null,
  now = Infinity,
): Lane[] {
  const dense = new Map((sent ?? []).filter((each) => !each.rows_complete).map((each) => [each.schedule_id, each]));
  const byId = new Map<string, Row[]>();
  for (const row of rows) {
    const known = byId.get(row.schedule_id);
    if (known === undefined) byId.set(row.schedule_id, [row]);
    else known.push(row);
  }
  for (const id of dense.keys()) if (!byId.has(id)) byId.set(id, []);
  const about = (id: string) => (Object.hasOwn(schedules, id) ? schedules[id] : undefined);
  const named = new Map<string, number>();
  for (const id of byId.keys()) named.set(about(id)?.name ?? "", (named.get(about(id)?.name ?? "") ?? 0) + 1);
  return [...byId].map(([id, own]) => {
    const known = about(id);
    const buckets = dense.get(id)?.buckets ?? null;
    const found = buckets === null ? attentionOf(own) : attentionOfCounts(buckets, now);
    return {
      id,
      rows: own,
      buckets,
      zone: known?.timezone ?? null,
      name: known?.name ?? null,
      title: known?.name && named.get(known.name) === 1 ? known.name : id,
      attention: known?.status === "broken" ? 0 : found,
      next:
        buckets === null
          ? (own.find((row) => row.predicted && row.decision === "dispatch")?.at ?? null)
          : (buckets.find((each) => Date.parse(each.at) >= now && each.dispatched)?.at ?? null),
    };
  });
}

/** The attention level from rows: a failed last run is more urgent than an earlier failure. */
export function attentionOf(rows: readonly Row[]): Attention {
  const looks = rows.filter((row) => !row.predicted).map(agendaLook);
  const ended = looks.filter((look) => look.tone === "ok" || look.tone === "bad");
  if (ended.at(-1)?.tone === "bad") return 0;
  if (looks.some((look) => look.shape === "question") || looks.at(-1)?.shape === "triangle") return 1;
  return looks.some((look) => look.tone === "bad" || look.shape === "triangle") ? 2 : CALM;
}

/** The attention level from counts: the last run of a bucket is known only if all failed. */
function attentionOfCounts(buckets: readonly Schemas["LaneBucket"][], now: number): Attention {
  const past = buckets.filter((each) => Date.parse(each.at) < now);
  const ran = past.findLast((each) => each.dispatched);
  if (ran?.failed && ran.failed === ran.dispatched) return 0;
  if (past.at(-1)?.missed) return 1;
  return past.some((each) => each.failed || each.missed) ? 2 : CALM;
}

/**
 * Order by attention level, then by next fire. Equal lanes keep their previous order, so that a lane does not move
 * under the pointer each time it fires.
 */
export function arranged(lanes: readonly Lane[], before: ReadonlyMap<string, number>): Lane[] {
  const place = (lane: Lane) => before.get(lane.id) ?? Infinity;
  return [...lanes].sort(
    (one, other) =>
      one.attention - other.attention ||
      (place(one) === place(other) ? 0 : place(one) - place(other)) ||
      byText(one.next ?? "~", other.next ?? "~") ||
      byText(one.id, other.id),
  );
}

function byText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A row as sent, without fields that have their default. */
export type SentRow = Schemas["AgendaRow"];

const DEFAULTS = {
  count: 1,
  run_id: null,
  state: null,
  started_at: null,
  finished_at: null,
  due: null,
  held: false,
  certainty: null,
  moved: [],
  sentence: null,
};

/** Merge answers of adjacent hours; the later answer wins for an occurrence in both. */
export function joined(answers: readonly (readonly SentRow[])[]): Row[] {
  const rows = new Map<string, Row>();
  for (const answer of answers)
    for (const row of answer) rows.set(`${row.at} ${row.schedule_id}`, { ...DEFAULTS, ...row });
  return [...rows.values()].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
}
