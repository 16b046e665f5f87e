// Filters of the list: parsed from the URL and converted to API queries.
import type { Choice, Many } from "../../parts/bulk";

export interface Filters {
  text: string;
  status: string;
  health: string;
  label: readonly string[];
  owner: string;
  source: string;
  workflow: string;
  bundle: string;
  calendar: string;
  assignee: string;
  deleted: boolean;
}

export const NO_FILTERS: Filters = {
  text: "",
  status: "",
  health: "",
  label: [],
  owner: "",
  source: "",
  workflow: "",
  bundle: "",
  calendar: "",
  assignee: "",
  deleted: false,
};

/** Statuses of live schedules that the server counts. */
export const STATUSES = ["active", "paused", "broken", "finished"] as const;
export const LISTED_STATUSES = [...STATUSES, "deleted"] as const;
/** Health states that the server can filter without reading every schedule. */
export const HEALTHS = ["failing", "late", "stale", "broken", "waiting_for_approval", "paused"] as const;
export const SOURCES = ["runtime", "template"] as const;

// Limits of the API.
const MOST_LABELS = 20;
const MOST_CHARACTERS = 200;

/** URL values are parsed as JSON, so a text may arrive as a number. Other types are ignored. */
function textOf(value: unknown): string {
  const text =
    typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";
  return text.replaceAll("\u0000", "").slice(0, MOST_CHARACTERS).trim();
}

function oneOf(value: unknown, known: readonly string[]): string {
  const text = textOf(value);
  return known.includes(text) ? text : "";
}

export function filtersOf(search: Readonly<Record<string, unknown>>): Filters {
  const labels = Array.isArray(search["label"]) ? search["label"] : [search["label"]];
  return {
    text: textOf(search["text"]),
    status: oneOf(search["status"], LISTED_STATUSES),
    health: oneOf(search["health"], HEALTHS),
    label: [...new Set(labels.map(textOf).filter(isLabel))].slice(0, MOST_LABELS),
    owner: textOf(search["owner"]),
    source: oneOf(search["source"], SOURCES),
    workflow: textOf(search["workflow"]),
    bundle: textOf(search["bundle"]),
    calendar: textOf(search["calendar"]),
    assignee: textOf(search["assignee"]),
    deleted: search["deleted"] === true || search["deleted"] === 1,
  };
}

/** Return whether a text has the form name=value; the value may be empty. */
export function isLabel(text: string): boolean {
  return text.indexOf("=") > 0;
}

/** Search parameters of the URL, without defaults. */
export function searchOf(filters: Filters): Record<string, string | boolean | readonly string[] | undefined> {
  return {
    text: filters.text || undefined,
    status: filters.status || undefined,
    health: filters.health || undefined,
    label: filters.label.length > 0 ? filters.label : undefined,
    owner: filters.owner || undefined,
    source: filters.source || undefined,
    workflow: filters.workflow || undefined,
    bundle: filters.bundle || undefined,
    calendar: filters.calendar || undefined,
    assignee: filters.assignee || undefined,
    deleted: filters.deleted || undefined,
  };
}

/** Query of `GET /api/schedules`. */
export function queryOf(filters: Filters): Record<string, unknown> {
  const { workflow, deleted, ...rest } = searchOf(filters);
  return given({ ...rest, workflow_id: workflow, include_deleted: deleted });
}

function given(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

export function isFiltered(filters: Filters): boolean {
  return Object.keys(queryOf(filters)).length > 0;
}

/** Statuses whose counts add up to the result; null = the server has no such count. */
export function statusesCounted(filters: Filters): readonly (typeof STATUSES)[number][] | null {
  const { status, ...others } = queryOf(filters);
  if (Object.keys(others).length > 0 || status === "deleted") return null;
  return status === undefined ? STATUSES : STATUSES.filter((each) => each === status);
}

export function sameFilters(one: Filters, other: Filters): boolean {
  const text = (filters: Filters) => JSON.stringify(searchOf({ ...filters, label: [...filters.label].sort() }));
  return text(one) === text(other);
}

/** Those behind "More filters". */
export function hasMoreFilters(filters: Filters): boolean {
  const { owner, source, workflow, bundle, calendar, assignee, deleted } = filters;
  return Boolean(owner || source || workflow || bundle || calendar || assignee || deleted);
}

/** Selection of all matching schedules: the server's bulk filter where it supports all of these filters. */
export function manyOf(filters: Filters): Many {
  const { text, status, label, health } = filters;
  if (health || hasMoreFilters({ ...filters, deleted: false }))
    return { kind: "listed", query: queryOf({ ...filters, deleted: false }) };
  const choice = given({
    name_contains: text || undefined,
    status: status || undefined,
    labels: label.length > 0 ? labelsOf(label) : undefined,
  }) as Choice;
  return { kind: "filter", choice: Object.keys(choice).length === 0 ? "all" : choice };
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}
