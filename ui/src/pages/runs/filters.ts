// Which runs are shown: read from the address, where anything may stand, and put into the words of the service.
import type { Ask, Schemas } from "../../api/client";
import { ALL_NAMESPACES, asksForAll } from "../../api/everywhere";
import { RUN_LOOKS } from "../../marks/outcomes";
import type { Choice } from "../../parts/Field";

export interface RunFilters {
  /** A state, or one of the groups. */
  state: string;
  origin: string;
  schedule: string;
  workflow: string;
  assignee: string;
  queue: string;
  /** Only runs that ended at this instant, or later. */
  since: string;
  /** Steps of workflows among the runs. */
  steps: boolean;
  /** Of all namespaces. */
  all: boolean;
}

type State = Schemas["RunState"];
type Query = NonNullable<Ask<"/api/runs", "get">["query"]>;

export const OPEN_STATES: readonly State[] = ["ready", "launching", "queued", "running", "held", "awaiting_approval"];

const GROUPS: Readonly<Record<string, readonly [text: string, states: readonly string[]]>> = {
  open: ["not ended", OPEN_STATES],
  unsuccessful: ["unsuccessful", ["unsuccessful"]],
  stopped: ["stopped", ["cancelled", "terminated", "rejected", "expired"]],
};
const ORIGINS: Readonly<Record<Schemas["Origin"], string>> = {
  scheduled: "by the clock",
  manual: "by hand",
  backfill: "by a backfill",
  api: "by a program",
  step: "as a step",
};

export const STATE_CHOICES: readonly Choice[] = [
  ["", "any state"],
  ...Object.entries(GROUPS).map(([name, [text]]): Choice => [name, text]),
  ...Object.entries(RUN_LOOKS).map(([state, look]): Choice => [state, look.word]),
];
export const ORIGIN_CHOICES: readonly Choice[] = [["", "any origin"], ...Object.entries(ORIGINS)];

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

/** What stands in the address: nothing for what is not asked. */
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

/** All open runs that fit the filters, where the service can choose by them; null = it cannot, or nothing is narrowed down. */
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
