// Which schedules are shown: read from the address, whatever stands there, and asked of the service.
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

/** The statuses of live schedules, which the service counts. */
export const STATUSES = ["active", "paused", "broken", "finished"] as const;
export const LISTED_STATUSES = [...STATUSES, "deleted"] as const;
/** Those that the service finds without looking at every schedule. */
export const HEALTHS = ["failing", "late", "stale", "broken", "waiting_for_approval", "paused"] as const;
export const SOURCES = ["runtime", "template"] as const;

// What the service takes at most.
const MOST_LABELS = 20;
const MOST_CHARACTERS = 200;

/** Values of an address are read as JSON, so a text may come as a number; what is no text at all is none. */
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

/** name=value, the value may be empty. */
export function isLabel(text: string): boolean {
  return text.indexOf("=") > 0;
}

/** What stands in the address: only what filters. */
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

/** As `GET /api/schedules` takes it. */
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

/** The statuses whose counts make up all of these; null = they are not counted so. */
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

/** All that fit, for whoever does something to them: by the service's own filter where it can choose by all of this. */
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
