// What an entry of the audit says in words, what it is about, and whether what is shown is a whole piece of the chain.
import type { Schemas } from "../../api/client";

export type Entry = Schemas["AuditEntry"];

/** An act is called what the operation is called: its words are its text. */
export function actText(act: string): string {
  return act.replaceAll("_", " ");
}

const REFUSALS: ReadonlySet<string> = new Set(["login_failed", "permission_refused"]);

export function isRefusal(act: string): boolean {
  return REFUSALS.has(act);
}

// The names under which entries tell what was acted on, the most telling first.
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

/** What it was done to, as far as the entry tells. */
export function subjectOf(entry: { detail: object }): string | null {
  const detail = entry.detail as Record<string, unknown>;
  const names = [...SUBJECTS, ...Object.keys(detail).filter((each) => each.endsWith("_id"))];
  const name = names.find((each) => typeof detail[each] === "string" && detail[each] !== "");
  const text = name === undefined ? null : String(detail[name]);
  return text !== null && text.length > MOST_SUBJECT ? `${text.slice(0, MOST_SUBJECT)}…` : text;
}

/** Where what it was done to, or what it changed there, is to be seen; paths of the app. */
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
// What a body calls `id` is that of the thing which the act makes.
const OF_ITSELF: Readonly<Record<string, string>> = { create_agent: "agent_id", create_team: "team_id" };

/** null = there is no page of it, or no more. */
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
    // The page of a deleted schedule shows what it was; other pages are gone.
    if (isGone && name !== "schedule_id") return null;
    return { to, params: { [param]: id }, ...changeIn(name, detail) };
  }
  return null;
}

/** What was changed: the definition or version that the entry names, beside the one before it. */
function changeIn(name: string, detail: Readonly<Record<string, unknown>>): Pick<Lead, "search"> {
  const number = detail[name === "schedule_id" ? "revision" : "version"];
  if (typeof number !== "number" || number < 2) return {};
  if (name === "schedule_id") return { search: { tab: "definition", before: number - 1, after: number } };
  return name === "workflow_id" ? { search: { version: number, against: number - 1 } } : {};
}

/** How many refusals of one minute it stands for. */
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

/** Of pages that came newest first: whether they end at the head and are numbered without gaps. */
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

/** From the address; what is no text is left out. Times may be written as the service reads them. */
export function filtersOf(search: Readonly<Record<string, unknown>>): Filters {
  const found: Filters = {};
  for (const name of NAMES) {
    const value = search[name];
    if ((typeof value === "string" || typeof value === "number") && String(value).trim() !== "")
      found[name] = String(value).slice(0, MOST_TEXT);
  }
  return found;
}

/** The chain is counted for a whole namespace: another namespace is no filter of it. */
export function isFiltered({ act, principal, since, until }: Filters): boolean {
  return [act, principal, since, until].some((each) => each !== undefined);
}
