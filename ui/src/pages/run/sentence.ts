// What is to be said of a run in one sentence: why it waits, why it ended as it did; pure.
import { assigneeText } from "../runs/rows";
import type { Schemas } from "../../api/client";
import { reasonText } from "../../marks/outcomes";

type Run = Schemas["Run"];
type Known = Pick<Run, "state"> & Partial<Run>;

const CAUSES: Readonly<Record<string, string>> = {
  parent_not_successful: "a step that it needs did not succeed",
  branch_not_taken: "the condition of its branch did not hold",
  workflow_halted: "another step failed, and the workflow was to halt",
  workflow_ended: "the workflow ended before it",
  run_cancelled: "the run was cancelled",
  run_cap_reached: "the run had used up what it may",
  runtime_cap: "it ran for as long as it may",
  cost_cap: "it cost as much as it may",
  tokens_cap: "it used as many tokens as it may",
  tool_calls_cap: "it called as many tools as it may",
  requested: "somebody asked for it",
  deadline_reached: "its deadline was reached",
  superseded: "a newer occurrence asks in its place",
  target_busy: "the target had no place for it for two minutes",
};

export function causeText(cause: string | null | undefined): string | null {
  if (!cause) return null;
  return Object.hasOwn(CAUSES, cause) ? CAUSES[cause]! : reasonText(cause);
}

const because = (run: Known) => {
  const why = causeText(run.cause ?? run.reason);
  return why === null ? "" : `: ${why}`;
};

const whom = (run: Known) => {
  return run.assignee ? ` by the ${assigneeText(run.assignee)}` : "";
};

function waits(run: Known): string {
  if (run.waiting_for) {
    const { agent_id, in_use, capacity } = run.waiting_for;
    return `It waits for a place: the agent ${agent_id} does ${in_use} of ${capacity} at a time already.`;
  }
  const again = run.attempt ? ` to be tried again, for the ${ordinal(run.attempt + 1)} time` : "";
  return run.task_queue
    ? `It waits${again} in the queue ${run.task_queue} until a worker takes it.`
    : `It is ready, and waits${again || " to be taken"}.`;
}

function asks(run: Known): string {
  const approval = run.approval;
  if (approval?.question) return "Its agent asks something, and goes on when it has an answer.";
  const gates = approval?.gates ?? [];
  return gates.length > 0 ? `It waits for a yes to ${gates.join(", ")}.` : "It waits for a yes before it starts.";
}

function runs(run: Known): string {
  const open = run.steps?.filter((step) => step.state === "awaiting_approval") ?? [];
  if (open.length > 0)
    return `It runs${whom(run)}; ${open
      .map((step) => step.node_id)
      .slice(0, 3)
      .join(", ")} waits for a yes.`;
  return run.attempt ? `It runs${whom(run)}, for the ${ordinal(run.attempt + 1)} time.` : `It runs${whom(run)}.`;
}

const SENTENCES: Readonly<Record<Run["state"], (run: Known) => string>> = {
  ready: waits,
  queued: waits,
  launching: () => "It is being handed over to whoever does it.",
  running: runs,
  held: () => "It is held until the run before it has ended.",
  awaiting_approval: asks,
  succeeded: (run) => `It succeeded${run.attempt ? ` at the ${ordinal(run.attempt + 1)} attempt` : ""}.`,
  failed: (run) => `It failed${run.attempt && run.attempt > 1 ? ` after ${run.attempt} attempts` : ""}${because(run)}.`,
  launch_failed: (run) => `It could not be handed over${because(run)}.`,
  timed_out: (run) => `It took too long${because(run)}.`,
  unknown: () => "Nobody knows what became of it: it was handed over, and no answer came.",
  skipped: (run) => `It was skipped${because(run)}.`,
  cancelled: (run) => `It was cancelled${because(run)}.`,
  terminated: (run) => `It was terminated${because(run)}.`,
  rejected: (run) =>
    `Somebody said no${run.approval?.decided_by ? `: ${run.approval.decided_by}` : ""}${run.approval?.reason ? `, “${run.approval.reason}”` : ""}.`,
  expired: (run) => (run.cause ? `Nobody said yes before${because(run)}.` : "Nobody said yes in time."),
};

const ENDED: ReadonlySet<string> = new Set<Run["state"]>([
  ...(["succeeded", "failed", "launch_failed", "timed_out", "unknown"] as const),
  ...(["skipped", "cancelled", "terminated", "rejected", "expired"] as const),
]);

export function hasEnded(run: Pick<Run, "state">): boolean {
  return ENDED.has(run.state);
}

export function sentence(run: Known): string {
  if (run.stop_requested_at && !hasEnded(run)) return "It was asked to stop, and has not stopped yet.";
  return SENTENCES[run.state](run);
}

export function ordinal(number: number): string {
  const tens = number % 100;
  const ending = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}
