// The filters of the list of runs: read from the URL, validated, and translated to a query.
import type { Ask, Schemas } from "../../api/client";
import { ALL_NAMESPACES, asksForAll } from "../../api/everywhere";
import type { Choice } from "../../parts/Field";
import { ORIGINS, RUN_GROUPS, RUN_STATES } from "../../words";

export interface RunFilters {
  /** A state or a group of states. */
  state: string;
  origin: string;
  schedule: string;
  workflow: string;
  assignee: string;
  queue: string;
  /** Only runs that ended at or after this instant. */
  since: string;
  /** Include steps of workflows. */
  steps: boolean;
  /** Include all namespaces. */
  all: boolean;
}

type State = Schemas["RunState"];
type Query = NonNullable<Ask<"/api/runs", "get">["query"]>;

export const OPEN_STATES: readonly State[] = ["ready", "launching", "queued", "running", "held", "awaiting_approval"];

const GROUPS: Readonly<Record<string, readonly [text: string, states: readonly string[]]>> = {
  open: [RUN_GROUPS.open, OPEN_STATES],
  unsuccessful: [RUN_GROUPS.failed, ["unsuccessful"]],
  stopped: [RUN_GROUPS.stopped, ["cancelled", "terminated", "rejected", "expired"]],
};

export const STATE_CHOICES: readonly Choice[] = [
  ["", "Any state"],
  ...Object.entries(GROUPS).map(([name, [text]]): Choice => [name, text]),
  ...Object.entries(RUN_STATES),
];
export const ORIGIN_CHOICES: readonly Choice[] = [["", "Any origin"], ...Object.entries(ORIGINS)];

export function originText(origin: Schemas["Origin"]): string {
  return ORIGINS[origin];
}

const LONGEST = 500;

export function filtersOf(search: Readonly<Record<string, unknown>>): RunFilters {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === "string" || typeof value === "number" ? String(value).slice(0, LONGEST) : "";
  };
  const known = (name: string, choices: readonly Choice[]) =>
    choices.some(([value]) => value === text(name)) ? text(name) : "";
  return {
    state: known("state", STATE_CHOICES),
    origin: known("origin", ORIGIN_CHOICES),
    schedule: text("schedule"),
    workflow: text("workflow"),
    assignee: text("assignee"),
    queue: text("queue"),
    since: text("since"),
    steps: search["steps"] === true || search["steps"] === "true",
    all: asksForAll(search),
  };
}

/** Return the query of the URL without unset filters. */
export function searchOf(filters: RunFilters): Record<string, unknown> {
  return Object.fromEntries(Object.entries(filters).map(([name, value]) => [name, value || undefined]));
}

export function queryOf(filters: RunFilters): Query {
  const states = GROUPS[filters.state]?.[1] ?? (filters.state === "" ? [] : [filters.state]);
  return {
    state: states.length > 0 ? [...states] : undefined,
    origin: filters.origin === "" ? undefined : [filters.origin],
    schedule_id: filters.schedule || undefined,
    workflow_id: filters.workflow || undefined,
    assignee: filters.assignee || undefined,
    queue: filters.queue || undefined,
    finished_after: filters.since || undefined,
    include: filters.steps ? "steps" : undefined,
    namespace: filters.all ? ALL_NAMESPACES : undefined,
  };
}

export function isFiltered(filters: RunFilters): boolean {
  return Object.values(filters).some(Boolean);
}

export interface WideChoice {
  text: string;
  filter: { states?: string[]; schedule_ids?: string[] };
}

/** Select all open runs that match the filters; null = the service cannot select by these filters. */
export function choiceOf(filters: RunFilters): WideChoice | null {
  const { state, schedule, ...others } = filters;
  if (Object.values(others).some(Boolean) || schedule === "") return null;
  const asked = queryOf({ ...filters, schedule: "" }).state ?? [];
  const states = asked.filter((each) => OPEN_STATES.some((open) => open === each));
  if (state !== "" && states.length === 0) return null;
  return {
    text: "all open runs of this schedule",
    filter: { schedule_ids: [schedule], states: state === "" ? undefined : states },
  };
}
