// The names of states: runs, schedules, approvals, decisions and forecasts.
import type { Schemas } from "../api/client";

export const RUN_STATES: Readonly<Record<Schemas["RunState"], string>> = {
  ready: "Ready",
  launching: "Dispatching",
  queued: "Queued",
  running: "Running",
  held: "Buffered",
  awaiting_approval: "Awaiting approval",
  succeeded: "Succeeded",
  failed: "Failed",
  launch_failed: "Dispatch failed",
  timed_out: "Timed out",
  unknown: "Unknown",
  skipped: "Skipped",
  cancelled: "Cancelled",
  terminated: "Terminated",
  rejected: "Rejected",
  expired: "Expired",
};

/** Groups of run states in filters and legends. */
export const RUN_GROUPS = {
  open: "All open",
  starting: "Starting",
  failed: "All failed",
  stopped: "All stopped",
} as const;

export const FORECASTS: Readonly<Record<Schemas["Forecast"], string>> = { dispatch: "Scheduled", skip: "Will skip" };

export const MISSED_TEXT = "Missed";

export const HEALTH: Readonly<Record<Schemas["HealthStatus"], string>> = {
  ok: "Healthy",
  failing: "Failing",
  late: "Late",
  stale: "Stale",
  broken: "Broken",
  never_run: "Never run",
  paused: "Paused",
  waiting_for_approval: "Awaiting approval",
};

export const SCHEDULE_STATUSES: Readonly<Record<Schemas["Status"], string>> = {
  active: "Active",
  paused: "Paused",
  broken: "Broken",
  finished: "Finished",
  deleted: "Deleted",
};

export const APPROVAL_STATES: Readonly<Record<Schemas["ApprovalDecision"], string>> = {
  pending: "Pending",
  approved: "Approved",
  modified: "Approved with changes",
  rejected: "Rejected",
  expired: "Expired",
};

/** The confidence of a forecast. */
export const CERTAINTY: Readonly<Record<Schemas["Certainty"], string>> = {
  certain: "Certain",
  likely: "Likely",
  unknown: "Uncertain",
};

/** The outcome that Explain reports for an instant. */
export const EXPLAINED: Readonly<Record<Schemas["ExplainedOutcome"], string>> = {
  fires: FORECASTS.dispatch,
  skips: FORECASTS.skip,
  nothing: "No occurrence",
  fired: "Fired",
  held: RUN_STATES.held,
  skipped: RUN_STATES.skipped,
  missed: MISSED_TEXT,
  covered: "Covered by another run",
  recorded: "Recorded",
};

/** The events of a schedule's history. */
export const SCHEDULE_EVENTS: Readonly<Record<Schemas["EventType"], string>> = {
  ScheduleCreated: "Created",
  ScheduleUpdated: "Updated",
  SchedulePaused: "Paused",
  ScheduleResumed: "Resumed",
  ScheduleTriggered: "Triggered",
  ScheduleTriggerSkipped: RUN_STATES.skipped,
  ScheduleBuffered: RUN_STATES.held,
  ScheduleMissed: MISSED_TEXT,
  ScheduleBroken: "Broken",
  ScheduleDeleted: "Deleted",
  ScheduleApprovalBypassAttempted: "Approval bypass blocked",
};

/** The source of a run. */
export const ORIGINS: Readonly<Record<Schemas["Origin"], string>> = {
  scheduled: "Scheduled",
  manual: "Manual",
  backfill: "Backfill",
  api: "API",
  step: "Workflow step",
};

/** A label inside a sentence: "Awaiting approval" becomes "awaiting approval", and "API" stays. */
export function inSentence(label: string): string {
  return /^[A-Z]{2}/.test(label) ? label : label.charAt(0).toLowerCase() + label.slice(1);
}
