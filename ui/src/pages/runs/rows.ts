// The rows of the list while new runs arrive: visible rows do not move.
import type { Schemas } from "../../api/client";

export type RunRow = Schemas["RunSummary"];

/** IDs sort by creation time, and lists are newest first. */
function idOf(row: RunRow): string {
  return row.run_id ?? "";
}

const MOST_KEPT = 4_000;

/**
 * Merge shown rows with a new answer. Within its range the answer replaces the rows. Older rows stay unless the answer
 * is complete.
 */
export function mergedRows(shown: readonly RunRow[], asked: readonly RunRow[], isAll: boolean): readonly RunRow[] {
  if (isAll || asked.length === 0) return asked;
  const oldest = idOf(asked[asked.length - 1]!);
  const below = shown.filter((row) => idOf(row) < oldest);
  return below.length === 0 ? asked : [...asked, ...below].slice(0, MOST_KEPT);
}

export interface Seen {
  rows: readonly RunRow[];
  /** The number of newer rows that are not shown. */
  fresh: number;
}

/** Hide and count rows that are newer than `top`; null = show all. */
export function seenRows(rows: readonly RunRow[], top: string | null): Seen {
  if (top === null) return { rows, fresh: 0 };
  const older = rows.filter((row) => idOf(row) <= top);
  return { rows: older, fresh: rows.length - older.length };
}

/** Seconds between due time and start; null before the start and without a due time. */
export function latenessOf(run: Pick<RunRow, "due" | "started_at">): number | null {
  if (!run.due || !run.started_at) return null;
  return Math.max(0, (Date.parse(run.started_at) - Date.parse(run.due)) / 1000);
}

const COUNTED: readonly RunRow["state"][] = ["failed", "timed_out"];

/** Return the number of the current or last attempt. `attempt` counts failures, including the last one of a failed run. */
export function attemptOf(run: Pick<RunRow, "state" | "attempt">): number {
  return COUNTED.includes(run.state) ? Math.max(run.attempt, 1) : run.attempt + 1;
}

/** Return the usage without zeros: "cost 1.25", "12,400 tokens". */
export function usageTexts(usage: Pick<Schemas["RunUsage"], "cost" | "tokens" | "tool_calls">): string[] {
  const texts: string[] = [];
  if (Number(usage.cost) !== 0) texts.push(`cost ${usage.cost}`);
  if (usage.tokens > 0) texts.push(`${usage.tokens.toLocaleString("en")} tokens`);
  if (usage.tool_calls > 0)
    texts.push(`${usage.tool_calls.toLocaleString("en")} tool call${usage.tool_calls === 1 ? "" : "s"}`);
  return texts;
}

type Titled = Pick<RunRow, "schedule_id" | "schedule_name" | "workflow" | "workflow_type" | "node_id" | "kind">;

/** Return the name of the schedule or workflow, its ID, or the kind of the run. */
export function titleOf(run: Titled): string {
  const { schedule_id: id, schedule_name: name, workflow } = run;
  const whole = name || id || workflow?.name || workflow?.workflow_id || run.workflow_type || run.kind || "run";
  return run.node_id === null ? whole : `${whole} · ${run.node_id}`;
}

/** Return the ID to show below the name; null if the title is the ID. */
export function secondaryId(of: Pick<RunRow, "schedule_id" | "schedule_name">): string | null {
  return of.schedule_name && of.schedule_name !== of.schedule_id ? of.schedule_id : null;
}

/** "The brief v2", "agent The writer", "team News desk (The writer)": names before ids. */
export function workflowText(of: Schemas["RunWorkflow"]): string {
  return `${of.name || of.workflow_id} v${of.version}`;
}

/** Return the agent, or the member of a team, that executes a step. */
export function workerText(of: Schemas["RunAssignee"]): string {
  return of.member ? of.member_name || of.member : of.name || of.id;
}

export function assigneeText(of: Schemas["RunAssignee"]): string {
  const member = of.member ? ` (${of.member_name || of.member})` : "";
  return `${of.type} ${of.name || of.id}${member}`;
}
