// The state of a run as a short text, with the reason for a wait or an end.
import { assigneeText } from "../runs/rows";
import type { Schemas } from "../../api/client";
import { causeText, inSentence, RUN_STATES } from "../../words";

type Run = Schemas["Run"];
type Known = Pick<Run, "state"> & Partial<Run>;

const attemptText = (run: Known, preposition: string) =>
  run.attempt ? `${preposition} attempt ${run.attempt + 1}` : "";

/** The state and its cause: "Failed: cost limit reached". */
const withCause = (run: Known, text = RUN_STATES[run.state]) => {
  const cause = causeText(run.cause ?? run.reason);
  return cause === null ? text : `${text}: ${inSentence(cause)}`;
};

function waiting(run: Known): string {
  if (run.waiting_for) {
    const { agent_id, in_use, capacity } = run.waiting_for;
    return `Waiting for agent ${agent_id}: ${in_use} of ${capacity} concurrent runs active`;
  }
  const attempt = attemptText(run, " for");
  if (run.task_queue) return `Waiting in queue ${run.task_queue}${attempt}`;
  return attempt ? `Waiting${attempt}` : "Waiting for dispatch";
}

function awaitingApproval(run: Known): string {
  const approval = run.approval;
  if (approval?.question) return "Waiting for an answer to the agent's question";
  const gates = approval?.gates ?? [];
  return gates.length > 0 ? `${RUN_STATES.awaiting_approval} for ${gates.join(", ")}` : RUN_STATES.awaiting_approval;
}

function running(run: Known): string {
  const assignee = run.assignee ? ` on ${assigneeText(run.assignee)}` : "";
  const text = `${RUN_STATES.running}${assignee}${attemptText(run, ",")}`;
  const open = run.steps?.filter((step) => step.state === "awaiting_approval").map((step) => step.node_id) ?? [];
  return open.length > 0 ? `${text}; awaiting approval: ${open.slice(0, 3).join(", ")}` : text;
}

function rejected(run: Known): string {
  const { decided_by: by, reason } = run.approval ?? {};
  return `${RUN_STATES.rejected}${by ? ` by ${by}` : ""}${reason ? `: “${reason}”` : ""}`;
}

const SENTENCES: Readonly<Record<Run["state"], (run: Known) => string>> = {
  ready: waiting,
  queued: waiting,
  launching: () => RUN_STATES.launching,
  running,
  held: () => "Buffered until the previous run ends",
  awaiting_approval: awaitingApproval,
  succeeded: (run) => `${RUN_STATES.succeeded}${attemptText(run, " on")}`,
  failed: (run) =>
    withCause(run, `${RUN_STATES.failed}${run.attempt && run.attempt > 1 ? ` after ${run.attempt} attempts` : ""}`),
  launch_failed: (run) => withCause(run),
  timed_out: (run) => withCause(run),
  unknown: () => "Outcome unknown: dispatched, but no result received",
  skipped: (run) => withCause(run),
  cancelled: (run) => withCause(run),
  terminated: (run) => withCause(run),
  rejected,
  expired: (run) => withCause(run, "Approval request expired"),
};

const ENDED: ReadonlySet<string> = new Set<Run["state"]>([
  ...(["succeeded", "failed", "launch_failed", "timed_out", "unknown"] as const),
  ...(["skipped", "cancelled", "terminated", "rejected", "expired"] as const),
]);

export function hasEnded(run: Pick<Run, "state">): boolean {
  return ENDED.has(run.state);
}

export function sentence(run: Known): string {
  if (run.stop_requested_at && !hasEnded(run)) return "Stop requested, not stopped yet";
  return SENTENCES[run.state](run);
}
