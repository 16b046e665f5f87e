// Search parameters of the schedule page. Invalid values are ignored.
import type { Schemas } from "../../api/client";
import { RUN_LOOKS } from "../../marks/outcomes";

export const TABS = ["coming", "runs", "history", "definition"] as const;
export type TabName = (typeof TABS)[number];

export const ORIGINS: readonly Schemas["Origin"][] = ["scheduled", "manual", "backfill", "api"];
export const STATES = Object.keys(RUN_LOOKS) as Schemas["RunState"][];

export interface Search {
  tab: TabName;
  /** Start of the list of upcoming runs. */
  from: string | null;
  /** Instant that the Explain dialog shows. */
  at: string | null;
  year: number | null;
  day: string | null;
  state: Schemas["RunState"] | null;
  origin: Schemas["Origin"] | null;
  /** Revisions to compare. */
  before: number | null;
  after: number | null;
}

// Years that the server supports.
export const FIRST_YEAR = 1901;
export const LAST_YEAR = 9891;

export function readSearch(given: Readonly<Record<string, unknown>>): Search {
  return {
    tab: oneOf(given["tab"], TABS) ?? "coming",
    from: asMoment(given["from"]),
    at: asMoment(given["at"]),
    year: whole(given["year"], FIRST_YEAR, LAST_YEAR),
    day: asDay(given["day"]),
    state: oneOf(given["state"], STATES),
    origin: oneOf(given["origin"], ORIGINS),
    before: whole(given["before"], 1, 2 ** 31),
    after: whole(given["after"], 1, 2 ** 31),
  };
}

function oneOf<T extends string>(value: unknown, words: readonly T[]): T | null {
  return words.find((word) => word === value) ?? null;
}

function whole(value: unknown, least: number, most: number): number | null {
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && number >= least && number <= most ? number : null;
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:[0-5]\d)$/;

/** Parse an RFC 3339 instant with an offset. */
export function asMoment(value: unknown): string | null {
  if (typeof value !== "string" || !RFC3339.test(value.trim())) return null;
  const text = value.trim().replace(" ", "T").toUpperCase();
  return Number.isFinite(Date.parse(text)) ? text : null;
}

/** Parse a valid calendar date. */
export function asDay(value: unknown): string | null {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d$/.test(value)) return null;
  const at = Date.parse(`${value}T00:00:00Z`);
  if (!Number.isFinite(at) || new Date(at).toISOString().slice(0, 10) !== value) return null;
  const year = Number(value.slice(0, 4));
  return year >= FIRST_YEAR && year <= LAST_YEAR ? value : null;
}
