// Which rows a reader sees while new runs come: nothing that is being read moves away; pure.
import type { Schemas } from "../../api/client";

export type RunRow = Schemas["RunSummary"];

/** Ids sort by the time of birth, and lists are newest first. */
function idOf(row: RunRow): string {
  return row.run_id ?? "";
}

const MOST_KEPT = 4_000;

/**
 * What was shown, brought up to date by what was asked again. Between the newest and the oldest row of the answer the
 * answer is right; older rows, which new ones have pushed out of it, stay as they were - unless the answer is all there is.
 */
export function mergedRows(shown: readonly RunRow[], asked: readonly RunRow[], isAll: boolean): readonly RunRow[] {
  if (isAll || asked.length === 0) return asked;
  const oldest = idOf(asked[asked.length - 1]!);
  const below = shown.filter((row) => idOf(row) < oldest);
  return below.length === 0 ? asked : [...asked, ...below].slice(0, MOST_KEPT);
}

export interface Seen {
  rows: readonly RunRow[];
  /** How many newer ones are held back. */
  fresh: number;
}

/** Rows that were born after the newest one that was seen, `top`, are counted and not shown; null = show all. */
export function seenRows(rows: readonly RunRow[], top: string | null): Seen {
  if (top === null) return { rows, fresh: 0 };
  const older = rows.filter((row) => idOf(row) <= top);
  return { rows: older, fresh: rows.length - older.length };
}

/** Seconds from when it was due to its start; null while it has not started, and for what was due at no time. */
export function latenessOf(run: Pick<RunRow, "due" | "started_at">): number | null {
  if (!run.due || !run.started_at) return null;
  return Math.max(0, (Date.parse(run.started_at) - Date.parse(run.due)) / 1000);
}

const COUNTED: readonly RunRow["state"][] = ["failed", "timed_out"];

/** Which attempt it is at, or ended with: `attempt` counts failures, and in a run that failed the last one is among them. */
export function attemptOf(run: Pick<RunRow, "state" | "attempt">): number {
  return COUNTED.includes(run.state) ? Math.max(run.attempt, 1) : run.attempt + 1;
}

/** "cost 1.25", "12,400 tokens": what it has used, without what is nothing. */
export function usageTexts(usage: Pick<Schemas["RunUsage"], "cost" | "tokens" | "tool_calls">): string[] {
  const texts: string[] = [];
  if (Number(usage.cost) !== 0) texts.push(`cost ${usage.cost}`);
  if (usage.tokens > 0) texts.push(`${usage.tokens.toLocaleString("en")} tokens`);
  if (usage.tool_calls > 0)
    texts.push(`${usage.tool_calls.toLocaleString("en")} tool call${usage.tool_calls === 1 ? "" : "s"}`);
  return texts;
}

type Titled = Pick<RunRow, "schedule_id" | "schedule_name" | "workflow" | "workflow_type" | "node_id" | "kind">;

/** The name of its schedule, or of its workflow; without one the id, or what the run does. */
export function titleOf(run: Titled): string {
  const { schedule_id: id, schedule_name: name, workflow } = run;
  const whole = name || id || workflow?.name || workflow?.workflow_id || run.workflow_type || run.kind || "run";
  return run.node_id === null ? whole : `${whole} · ${run.node_id}`;
}

/** The id that stands below the name; null where the title is the id already. */
export function secondaryId(of: Pick<RunRow, "schedule_id" | "schedule_name">): string | null {
  return of.schedule_name && of.schedule_name !== of.schedule_id ? of.schedule_id : null;
}

/** "The brief v2", "agent The writer", "team News desk (The writer)": names before ids. */
export function workflowText(of: Schemas["RunWorkflow"]): string {
  return `${of.name || of.workflow_id} v${of.version}`;
}

/** Who does the work: of a team the member. */
export function workerText(of: Schemas["RunAssignee"]): string {
  return of.member ? of.member_name || of.member : of.name || of.id;
}

export function assigneeText(of: Schemas["RunAssignee"]): string {
  const member = of.member ? ` (${of.member_name || of.member})` : "";
  return `${of.type} ${of.name || of.id}${member}`;
}
