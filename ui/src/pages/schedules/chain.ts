// Where the pages of a long list begin: what stays of those that were seen, when their rows have been let go again.
import type { Schemas } from "../../api/client";

/** Of a row as little as this: a hundred thousand of them are a few megabytes. */
type Told = Pick<Schemas["Schedule"], "uid" | "schedule_id" | "status">;
export interface Answer<R extends Told = Told> {
  schedules: readonly R[];
  next_page_token?: string | null;
}

/** null = the beginning of the list. */
export type Cursor = string | null;

interface PageOfIds {
  cursor: Cursor;
  uids: readonly string[];
  /** Of those that can be chosen. */
  ids: readonly string[];
}

export interface Seen extends PageOfIds {
  /** How many rows stand before it. */
  start: number;
}

export interface Chain {
  seen: readonly Seen[];
  /** Where the first page begins that nobody has seen; undefined = there is none. */
  next: Cursor | undefined;
  /** How many rows all the pages have. */
  count: number;
  /** There were so many before a page had to be asked for again: the place of whoever looks at them is kept. */
  expected: number;
}

export interface Range {
  first: number;
  last: number;
}

/** `whole`: with all that a row shows; else only to learn where the next page begins. */
export interface Wanted {
  cursor: Cursor;
  size: number;
  whole: boolean;
}

export const NOTHING_SEEN: Chain = { seen: [], next: null, count: 0, expected: 0 };

const FIRST_SIZE = 50;
const SIZE = 100;
/** What the service gives at most. */
const MOST = 200;
/** A page is asked for again with so many more rows, since new ones may have come among its own. */
const ROOM = 20;
/** So many rows before the end of what is known, the next page is asked for. */
const AHEAD = 40;
/** Whoever is so far behind the end of what is known is on the way elsewhere. */
const FAR = 2 * SIZE;
/** So many places are kept for rows of which nobody knows how many there are. */
const PLACES = 8;

/** How many rows the list has room for; `total` is what the service counted, where it did. */
export function lengthOf({ next, count, expected }: Chain, total: number | null): number {
  return next === undefined ? count : Math.max(count + PLACES, expected, total ?? 0);
}

/** The pages in view with one before and one after them, and the first unknown one where it is near or on the way. */
export function pagesWanted(chain: Chain, { first, last }: Range): Wanted[] {
  const { seen, next, count } = chain;
  if (next !== undefined && first >= count + FAR) return [{ cursor: next, size: MOST - ROOM, whole: false }];
  const near = seen.slice(Math.max(0, placeOf(chain, first) - 1), placeOf(chain, last) + 2);
  const wanted = near.map(({ cursor, uids }) => ({ cursor, size: Math.min(MOST, uids.length + ROOM), whole: true }));
  if (next === undefined || last + AHEAD < count) return wanted;
  return [...wanted, { cursor: next, size: seen.length === 0 ? FIRST_SIZE : SIZE, whole: true }];
}

/** The page that has a row, or the last one. */
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
 * With what was answered about the page that begins there; the same chain, where that is nothing new.
 *
 * A page ends with the row it ended with before, so that a new row does not push all others one page on. Where that row
 * is gone, the page ends elsewhere, and what followed it is forgotten.
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

/** Without the page that cannot begin there, since the row before it is gone, and without the page that had this row. */
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
