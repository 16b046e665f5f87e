// The texts and targets of audit entries, and the integrity of a list of entries.
import type { Schemas } from "../../api/client";
import { capitalised } from "../../words";

export type Entry = Schemas["AuditEntry"];

const ACTS: Readonly<Record<string, string>> = { admin_token_made: "Create admin token" };

/** Return the name of an operation as a label: "Issue token". */
export function actText(act: string): string {
  return Object.hasOwn(ACTS, act) ? ACTS[act]! : capitalised(act.replaceAll("_", " "));
}

const REFUSALS: ReadonlySet<string> = new Set(["login_failed", "permission_refused"]);

export function isRefusal(act: string): boolean {
  return REFUSALS.has(act);
}

// The fields that name the target of an entry, in order of preference.
const SUBJECTS = [
  "schedule_id",
  "run_id",
  "approval_id",
  "workflow_id",
  "calendar",
  "agent_id",
  "team_id",
  "assignment_id",
  "id",
  "name",
  "token_id",
  "namespace",
  "path",
  "operation",
];
const MOST_SUBJECT = 120;

/** Return the target of an entry, or null. */
export function subjectOf(entry: { detail: object }): string | null {
  const detail = entry.detail as Record<string, unknown>;
  const names = [...SUBJECTS, ...Object.keys(detail).filter((each) => each.endsWith("_id"))];
  const name = names.find((each) => typeof detail[each] === "string" && detail[each] !== "");
  const text = name === undefined ? null : String(detail[name]);
  return text !== null && text.length > MOST_SUBJECT ? `${text.slice(0, MOST_SUBJECT)}…` : text;
}

/** The page of the target or of its change. */
export interface Lead {
  to: string;
  params: Record<string, string>;
  search?: Record<string, unknown>;
}

const PAGES: readonly (readonly [name: string, to: string, param: string])[] = [
  ["schedule_id", "/schedules/$scheduleId", "scheduleId"],
  ["run_id", "/runs/$runId", "runId"],
  ["approval_id", "/approvals/$approvalId", "approvalId"],
  ["workflow_id", "/workflows/$workflowId", "workflowId"],
  ["agent_id", "/agents/$agentId", "agentId"],
  ["team_id", "/teams/$teamId", "teamId"],
];
// The `id` in the body of these operations is the ID of the created object.
const OF_ITSELF: Readonly<Record<string, string>> = { create_agent: "agent_id", create_team: "team_id" };

/** Return the page of the target; null = no page. */
export function leadOf(entry: { act: string; detail: object }): Lead | null {
  const detail: Record<string, unknown> = { ...entry.detail };
  const own = OF_ITSELF[entry.act];
  if (own !== undefined) detail[own] ??= detail["id"];
  const text = (name: string): string | null => (typeof detail[name] === "string" ? detail[name] : null) || null;
  const isGone = entry.act.startsWith("delete_");
  const calendar = entry.act.includes("calendar") ? (text("new_name") ?? text("name")) : null;
  if (calendar !== null) return isGone ? null : { to: "/calendars/$name", params: { name: calendar } };
  for (const [name, to, param] of PAGES) {
    const id = text(name);
    if (id === null) continue;
    // Only deleted schedules keep their page.
    if (isGone && name !== "schedule_id") return null;
    return { to, params: { [param]: id }, ...changeIn(name, detail) };
  }
  return null;
}

/** Compare the definition or version of the entry with the previous one. */
function changeIn(name: string, detail: Readonly<Record<string, unknown>>): Pick<Lead, "search"> {
  const number = detail[name === "schedule_id" ? "revision" : "version"];
  if (typeof number !== "number" || number < 2) return {};
  if (name === "schedule_id") return { search: { tab: "definition", before: number - 1, after: number } };
  return name === "workflow_id" ? { search: { version: number, against: number - 1 } } : {};
}

/** Return the number of denied requests that one entry counts. */
export function countOf(entry: { detail: object }): number {
  const count = (entry.detail as Record<string, unknown>)["count"];
  return typeof count === "number" && count > 1 ? count : 1;
}

export type Chain =
  | { kind: "empty" }
  | { kind: "whole"; first: number; last: number; toBegin: boolean }
  | { kind: "gap"; after: number }
  | { kind: "filtered"; head: number }
  | { kind: "head_gone" };

type Page = Pick<Schemas["Audit"], "begin" | "head"> & { entries: readonly Pick<Entry, "sequence">[] };

/** Check that pages, newest first, end at the head and have no gaps. */
export function chainOf(pages: readonly Page[], isFiltered: boolean): Chain {
  const first = pages[0];
  const entries = pages.flatMap((page) => page.entries);
  if (first === undefined || (first.head === null && entries.length === 0)) return { kind: "empty" };
  if (first.head === null) return { kind: "head_gone" };
  if (isFiltered) return { kind: "filtered", head: first.head.sequence };
  let expected = first.head.sequence;
  for (const { sequence } of entries) {
    if (sequence > expected && expected === first.head.sequence) expected = sequence; // written between two pages
    if (sequence !== expected) return { kind: "gap", after: sequence };
    expected -= 1;
  }
  return { kind: "whole", first: expected + 1, last: first.head.sequence, toBegin: expected <= first.begin.sequence };
}

export interface Filters {
  namespace?: string;
  act?: string;
  principal?: string;
  since?: string;
  until?: string;
}

const NAMES = ["namespace", "act", "principal", "since", "until"] as const;
const MOST_TEXT = 256;

/** Read the filters from the URL and ignore other values. */
export function filtersOf(search: Readonly<Record<string, unknown>>): Filters {
  const found: Filters = {};
  for (const name of NAMES) {
    const value = search[name];
    if ((typeof value === "string" || typeof value === "number") && String(value).trim() !== "")
      found[name] = String(value).slice(0, MOST_TEXT);
  }
  return found;
}

/** Each namespace has its own chain, so the namespace is not a filter. */
export function isFiltered({ act, principal, since, until }: Filters): boolean {
  return [act, principal, since, until].some((each) => each !== undefined);
}
