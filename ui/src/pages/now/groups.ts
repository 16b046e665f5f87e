// The content of a lane: single marks, groups of marks, and bars of long runs.
import type { Schemas } from "../../api/client";
import { agendaLook, type Look, type Tone } from "../../marks/outcomes";
import { position, type Span } from "../../time/axis";
import { inSentence } from "../../words";

/** A row with the omitted defaults filled in. */
export type Row = Required<Schemas["AgendaRow"]>;

export interface Group {
  key: string;
  /** The left edge. */
  x: number;
  /** The width. */
  width: number;
  /** The look of the worst row. */
  look: Look;
  /** The number of occurrences, as one row may cover many missed ones. */
  count: number;
  rows: readonly Row[];
  /** The row to explain first. */
  worst: Row;
}

export interface Bar {
  key: string;
  x: number;
  width: number;
  tone: Tone;
}

export const MARK_WIDTH = 13;
const SHORTEST_BAR = 8;

/** The severity: failures first, intended skips last. */
const SEVERITY: Record<Tone, number> = { bad: 6, warn: 5, hold: 4, info: 3, ok: 2, accent: 1, quiet: 0 };

export function severity(look: Look): number {
  return SEVERITY[look.tone];
}

/** The width of a number next to its shape. */
export function pillWidth(count: number): number {
  return count <= 1 ? MARK_WIDTH : 24 + 7 * countText(count).length;
}

export function countText(count: number): string {
  return count < 1_000 ? String(count) : count < 100_000 ? `${Math.floor(count / 1_000)}k` : "99k+";
}

/**
 * Group marks that would overlap: predictions from now to the right, decisions from now to the left, so that both never
 * share a mark. `rows` are in order of time.
 */
export function groupMarks(rows: readonly Row[], span: Span, width: number): Group[] {
  const seen = rows
    .map((row) => ({ row, x: placeOf(row, span, width) }))
    .filter(({ x }) => x > -MARK_WIDTH && x < width + MARK_WIDTH)
    .sort((one, other) => one.x - other.x);
  const coming = forward(seen.filter(({ row }) => row.predicted));
  const decided = seen.filter(({ row }) => !row.predicted);
  const last = decided.at(-1)?.x ?? 0;
  const border = coming.find((each) => each.x > last - MARK_WIDTH)?.x ?? Infinity;
  return [...backward(decided, border), ...coming].sort((one, other) => one.x - other.x);
}

/** A run that began before the view is placed at its edge. */
function placeOf(row: Row, span: Span, width: number): number {
  const x = position(Date.parse(row.at), span, width);
  return row.started_at && !row.finished_at && !row.predicted ? Math.max(x, HALF) : x;
}

interface Placed {
  row: Row;
  x: number;
}

const HALF = MARK_WIDTH / 2;

function forward(seen: readonly Placed[]): Group[] {
  const groups: Group[] = [];
  for (let from = 0; from < seen.length;) {
    const left = seen[from]!.x - HALF;
    let [count, to] = [seen[from]!.row.count, from + 1];
    while (to < seen.length && seen[to]!.x - HALF < left + pillWidth(count)) {
      count += seen[to]!.row.count;
      to += 1;
    }
    groups.push(groupOf(left, count, seen.slice(from, to)));
    from = to;
  }
  return groups;
}

/** The last group ends before the first group after now. */
function backward(seen: readonly Placed[], border: number): Group[] {
  const groups: Group[] = [];
  let limit = border;
  for (let to = seen.length - 1; to >= 0;) {
    const right = Math.min(limit, seen[to]!.x + HALF);
    let [count, from] = [seen[to]!.row.count, to - 1];
    while (from >= 0 && seen[from]!.x + HALF > right - pillWidth(count)) {
      count += seen[from]!.row.count;
      from -= 1;
    }
    limit = right - pillWidth(count);
    groups.push(groupOf(limit, count, seen.slice(from + 1, to + 1)));
    to = from;
  }
  return groups;
}

function groupOf(x: number, count: number, seen: readonly Placed[]): Group {
  const rows = seen.map(({ row }) => row);
  const worst = rows.reduce((one, other) => (severity(agendaLook(other)) > severity(agendaLook(one)) ? other : one));
  // The key is the first row, so that the group keeps the focus while others change.
  const anchor = rows[0]!.predicted ? rows[0]! : rows.at(-1)!;
  return {
    key: anchor.at + (anchor.predicted ? "p" : "d"),
    x,
    width: pillWidth(count),
    look: agendaLook(worst),
    count,
    rows,
    worst,
  };
}

/** Runs longer than the width of a mark; active runs end at now. */
export function runBars(rows: readonly Row[], span: Span, width: number, now: number): Bar[] {
  const bars: Bar[] = [];
  for (const row of rows) {
    if (!row.started_at) continue;
    const [begun, ended] = [Date.parse(row.started_at), row.finished_at ? Date.parse(row.finished_at) : now];
    const from = Math.max(-2, position(begun, span, width));
    const to = Math.min(width + 2, position(ended, span, width));
    if (to - from < SHORTEST_BAR) continue;
    bars.push({ key: row.at, x: from, width: to - from, tone: agendaLook(row).tone });
  }
  return bars;
}

/** "Succeeded", "24 succeeded", or "24: 4 failed, 20 succeeded", worst first. */
export function wordsOf(group: Pick<Group, "rows" | "count">): string {
  const counts = new Map<string, { many: number; severity: number }>();
  for (const row of group.rows) {
    const look = agendaLook(row);
    const known = counts.get(look.word) ?? { many: 0, severity: severity(look) };
    counts.set(look.word, { ...known, many: known.many + row.count });
  }
  const parts = [...counts].sort((one, other) => other[1].severity - one[1].severity);
  const text = parts.map(([word, { many }]) => (group.count === 1 ? word : `${many} ${inSentence(word)}`)).join(", ");
  return parts.length > 1 ? `${group.count}: ${text}` : text;
}
