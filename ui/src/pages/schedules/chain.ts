// Page cursors and row ids of a long list, kept after the rows are unloaded.
import type { Schemas } from "../../api/client";

/** Fields kept of each row: 100,000 rows take a few megabytes. */
type Told = Pick<Schemas["Schedule"], "uid" | "schedule_id" | "status">;
export interface Answer<R extends Told = Told> {
  schedules: readonly R[];
  next_page_token?: string | null;
}

/** null = start of the list. */
export type Cursor = string | null;

interface PageOfIds {
  cursor: Cursor;
  uids: readonly string[];
  /** Selectable rows. */
  ids: readonly string[];
}

export interface Seen extends PageOfIds {
  /** Number of rows before the page. */
  start: number;
}

export interface Chain {
  seen: readonly Seen[];
  /** Cursor of the first unknown page; undefined = the list is complete. */
  next: Cursor | undefined;
  /** Number of rows in all pages. */
  count: number;
  /** Number of rows before a page was loaded again; keeps the scroll position. */
  expected: number;
}

export interface Range {
  first: number;
  last: number;
}

/** `whole`: load the rows; otherwise only the cursor of the next page. */
export interface Wanted {
  cursor: Cursor;
  size: number;
  whole: boolean;
}

export const NOTHING_SEEN: Chain = { seen: [], next: null, count: 0, expected: 0 };

const FIRST_SIZE = 50;
const SIZE = 100;
/** Maximum page size of the API. */
const MOST = 200;
/** Additional rows of a refresh, because new rows may have been inserted. */
const ROOM = 20;
/** Distance from the last known row at which the next page is loaded. */
const AHEAD = 40;
/** Distance beyond the last known row that counts as scrolling through. */
const FAR = 2 * SIZE;
/** Number of placeholders when the total is unknown. */
const PLACES = 8;

/** Number of rows and placeholders; `total` is the count of the server, if known. */
export function lengthOf({ next, count, expected }: Chain, total: number | null): number {
  return next === undefined ? count : Math.max(count + PLACES, expected, total ?? 0);
}

/** Return the pages in view, one before and one after, and the first unknown page if it is near. */
export function pagesWanted(chain: Chain, { first, last }: Range): Wanted[] {
  const { seen, next, count } = chain;
  if (next !== undefined && first >= count + FAR) return [{ cursor: next, size: MOST - ROOM, whole: false }];
  const near = seen.slice(Math.max(0, placeOf(chain, first) - 1), placeOf(chain, last) + 2);
  const wanted = near.map(({ cursor, uids }) => ({ cursor, size: Math.min(MOST, uids.length + ROOM), whole: true }));
  if (next === undefined || last + AHEAD < count) return wanted;
  return [...wanted, { cursor: next, size: seen.length === 0 ? FIRST_SIZE : SIZE, whole: true }];
}

/** Return the page that contains a row, or the last page. */
export function placeOf({ seen }: Chain, index: number): number {
  let [low, high] = [0, seen.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (seen[middle]!.start <= index) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function uidAt(chain: Chain, index: number): string | undefined {
  const page = index < chain.count ? chain.seen[placeOf(chain, index)] : undefined;
  return page?.uids[index - page.start];
}

/**
 * Add the answer for the page at a cursor; return the same chain if nothing changed.
 *
 * A page keeps its last row, so a new row does not shift all later pages. If that row was deleted, later pages are
 * discarded.
 */
export function answered(chain: Chain, cursor: Cursor, { schedules, next_page_token: token }: Answer): Chain {
  const { seen } = chain;
  const next = token ?? undefined;
  const place = seen.findIndex((each) => each.cursor === cursor);
  if (place < 0) return cursor === chain.next ? linked(chain, [...seen, pageOf(cursor, schedules)], next) : chain;
  const known = seen[place]!;
  const following = place + 1 < seen.length ? seen[place + 1]!.cursor : chain.next;
  const end = schedules.findLastIndex((row) => row.uid === known.uids.at(-1));
  const goesOn = next !== undefined && (end >= 0 || next === following) && following !== undefined;
  const page = pageOf(cursor, goesOn && end >= 0 ? schedules.slice(0, end + 1) : schedules);
  if (!goesOn)
    return next === following && sameRows(page, known) ? chain : linked(chain, [...seen.slice(0, place), page], next);
  return sameRows(page, known)
    ? chain
    : linked(chain, [...seen.slice(0, place), page, ...seen.slice(place + 1)], chain.next);
}

/** Remove the page whose cursor row was deleted, and the page that contained the row. */
export function withoutStale(chain: Chain, cursor: Cursor): Chain {
  const place = chain.seen.findIndex((each) => each.cursor === cursor);
  const before = (place < 0 ? chain.seen.length : place) - 1;
  const again = chain.seen[before];
  return again === undefined
    ? { ...NOTHING_SEEN, expected: chain.count }
    : linked(chain, chain.seen.slice(0, before), again.cursor);
}

export function rowsOf<R extends Told>(chain: Chain, cursor: Cursor, answer: Answer<R>): readonly R[] {
  const page = chain.seen.find((each) => each.cursor === cursor);
  return page === undefined ? [] : answer.schedules.slice(0, page.uids.length);
}

function pageOf(cursor: Cursor, rows: readonly Told[]): PageOfIds {
  const ids = rows.filter((row) => row.status !== "deleted").map((row) => row.schedule_id);
  return { cursor, uids: rows.map((row) => row.uid), ids };
}

function linked(before: Chain, pages: readonly PageOfIds[], next: Cursor | undefined): Chain {
  let count = 0;
  const seen: Seen[] = [];
  for (const page of pages) {
    seen.push({ ...page, start: count });
    count += page.uids.length;
  }
  return { seen, next, count, expected: Math.max(before.count, before.expected) };
}

function sameRows(one: PageOfIds, other: PageOfIds): boolean {
  const same = (these: readonly string[], those: readonly string[]) =>
    these.length === those.length && these.every((each, index) => each === those[index]);
  return same(one.uids, other.uids) && same(one.ids, other.ids);
}
