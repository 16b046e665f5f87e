// The reasons of decisions and the causes of ended runs. Each is a short label.
import type { Schemas } from "../api/client";
import { OVERLAP_LABEL } from "./policies";

/** Exactly the reasons that the service returns: the build fails if one is missing. */
const REASONS: Readonly<Record<Schemas["Reason"] | Schemas["NoRun"], string>> = {
  calendar: "Excluded by calendar",
  condition_failed: "Condition not met",
  overlap_policy_skip: "Previous run still active",
  buffer_full: "Buffer full",
  missed: "Scheduler was down",
  catchup_cap: "Catch-up limit reached",
  daily_limit_reached: "Daily limit reached",
  budget_exceeded: "Budget exceeded",
  quota_exceeded: "Namespace quota exceeded",
  max_concurrent_reached: "Concurrency limit reached",
  outside_window: "Outside the start and end of the schedule",
  remaining_actions_exhausted: "Max runs reached",
  status_not_triggerable: "Schedule not active",
  superseded: "Superseded by an edit, pause or deletion",
  target_busy: "Target busy",
  native_scheduler: "Agent is self-scheduled",
  not_the_owner: "Workflow has another owner",
  already_exists: "Run already exists",
  cycle_detected: "Workflow contains a cycle",
  finished: "Schedule finished",
};

const CAUSES: Readonly<Record<string, string>> = {
  parent_not_successful: "Required step did not succeed",
  branch_not_taken: "Branch condition not met",
  workflow_halted: "Workflow halted after a failed step",
  workflow_ended: "Workflow ended first",
  run_cancelled: "Workflow run cancelled",
  run_cap_reached: "Run limit reached",
  runtime_cap: "Runtime limit reached",
  cost_cap: "Cost limit reached",
  tokens_cap: "Token limit reached",
  tool_calls_cap: "Tool call limit reached",
  requested: "Requested by a user",
  deadline_reached: "Deadline reached",
  superseded: "Superseded by a newer occurrence",
  target_busy: "Target busy for two minutes",
};

/** Return the label of a reason, or the reason itself if it is unknown here. */
export function reasonText(reason: string | null | undefined): string | null {
  if (!reason) return null;
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as keyof typeof REASONS] : reason.replaceAll("_", " ");
}

/** Return the label of the cause with which a run ended. */
export function causeText(cause: string | null | undefined): string | null {
  if (!cause) return null;
  return Object.hasOwn(CAUSES, cause) ? CAUSES[cause]! : reasonText(cause);
}

/** The checks that precede a decision. Each passes, fails, is not evaluated or is not applicable. */
export const CHECKS: Readonly<Record<string, string>> = {
  spec: "Schedule times",
  status_not_triggerable: "Schedule status",
  outside_window: "Start and end",
  remaining_actions_exhausted: "Max runs",
  native_scheduler: "Scheduling owner",
  calendar: "Calendars",
  condition_failed: "Condition",
  budget_exceeded: "Budget",
  daily_limit_reached: "Daily limit",
  cycle_detected: "Workflow cycles",
  not_the_owner: "Workflow owner",
  quota_exceeded: "Namespace quota",
  overlap: OVERLAP_LABEL,
};

export const CHECK_ANSWERS = { yes: "Passed", no: "Failed", notEvaluated: "Not evaluated" } as const;
export const NOT_APPLICABLE = "Not applicable";
