// What can become of an occurrence, each with a word, a tone and a shape: nobody has to tell colours apart.
import type { Schemas } from "../api/client";

export type Tone = "ok" | "bad" | "warn" | "info" | "hold" | "quiet" | "accent";
export type Shape =
  | "disc" // done
  | "half" // under way
  | "cross" // a run that failed, and a schedule whose runs fail
  | "alert" // a schedule that cannot be decided, and an answer that refuses
  | "diamond" // skipped
  | "triangle" // missed
  | "bars" // held behind others
  | "question" // waits for a yes
  | "ring" // will fire
  | "dash" // will be skipped
  | "slash" // stopped
  | "dot"; // on its way

export interface Look {
  word: string;
  tone: Tone;
  shape: Shape;
}

export const RUN_LOOKS: Record<Schemas["RunState"], Look> = {
  ready: { word: "ready", tone: "info", shape: "dot" },
  launching: { word: "launching", tone: "info", shape: "half" },
  queued: { word: "queued", tone: "info", shape: "dot" },
  running: { word: "running", tone: "info", shape: "half" },
  held: { word: "held", tone: "hold", shape: "bars" },
  awaiting_approval: { word: "waits for a yes", tone: "warn", shape: "question" },
  succeeded: { word: "succeeded", tone: "ok", shape: "disc" },
  failed: { word: "failed", tone: "bad", shape: "cross" },
  launch_failed: { word: "launch failed", tone: "bad", shape: "cross" },
  timed_out: { word: "timed out", tone: "bad", shape: "cross" },
  unknown: { word: "outcome unknown", tone: "bad", shape: "cross" },
  skipped: { word: "skipped", tone: "quiet", shape: "diamond" },
  cancelled: { word: "cancelled", tone: "quiet", shape: "slash" },
  terminated: { word: "terminated", tone: "quiet", shape: "slash" },
  rejected: { word: "rejected", tone: "quiet", shape: "slash" },
  expired: { word: "expired", tone: "warn", shape: "slash" },
};

export const MISSED: Look = { word: "missed", tone: "warn", shape: "triangle" };
export const SKIPPED: Look = RUN_LOOKS.skipped;
export const HELD: Look = RUN_LOOKS.held;
export const WILL_FIRE: Look = { word: "will fire", tone: "accent", shape: "ring" };
export const WILL_SKIP: Look = { word: "will be skipped", tone: "quiet", shape: "dash" };

export const HEALTH_LOOKS: Record<Schemas["HealthStatus"], Look> = {
  ok: { word: "well", tone: "ok", shape: "disc" },
  failing: { word: "failing", tone: "bad", shape: "cross" },
  late: { word: "late", tone: "warn", shape: "triangle" },
  stale: { word: "stale", tone: "warn", shape: "triangle" },
  broken: { word: "broken", tone: "bad", shape: "alert" },
  never_run: { word: "never run", tone: "quiet", shape: "ring" },
  paused: { word: "paused", tone: "quiet", shape: "bars" },
  waiting_for_approval: { word: "waits for a yes", tone: "warn", shape: "question" },
};

export const STATUS_LOOKS: Record<Schemas["Status"], Look> = {
  active: { word: "active", tone: "ok", shape: "disc" },
  paused: { word: "paused", tone: "quiet", shape: "bars" },
  broken: { word: "broken", tone: "bad", shape: "alert" },
  finished: { word: "finished", tone: "quiet", shape: "slash" },
  deleted: { word: "deleted", tone: "quiet", shape: "slash" },
};

/** How sure a forecast is. */
export const CERTAINTY_TEXTS: Record<Schemas["Certainty"], string> = {
  certain: "Certain",
  likely: "Likely",
  unknown: "Uncertain",
};

/** One row of an agenda: decided, or predicted. */
export function agendaLook(row: Pick<Schemas["AgendaRow"], "decision" | "predicted" | "state" | "reason">): Look {
  if (row.predicted) return row.decision === "dispatch" ? WILL_FIRE : WILL_SKIP;
  if (row.state) return RUN_LOOKS[row.state];
  return row.reason === "missed" || row.reason === "catchup_cap"
    ? MISSED
    : row.decision === "dispatch"
      ? RUN_LOOKS.ready
      : SKIPPED;
}

/** All that the service can give, and no others: the build fails where they differ. */
const REASONS: Readonly<Record<Schemas["Reason"] | Schemas["NoRun"], string>> = {
  calendar: "the calendar closes this day",
  condition_failed: "its condition did not hold",
  overlap_policy_skip: "the run before was still going",
  buffer_full: "too many were held already",
  missed: "nobody was there to decide in time",
  catchup_cap: "more were missed than are caught up",
  daily_limit_reached: "the limit of the day was reached",
  budget_exceeded: "the budget is spent",
  quota_exceeded: "the quota of the namespace is used up",
  max_concurrent_reached: "as many as may run at once were running",
  outside_window: "outside of start and end",
  remaining_actions_exhausted: "all its runs were used",
  status_not_triggerable: "the schedule is not active",
  superseded: "an edit came before it was decided",
  target_busy: "the target was busy",
  native_scheduler: "the agent schedules itself",
  not_the_owner: "the workflow is somebody else's by now",
  already_exists: "it had a run already",
  cycle_detected: "the workflow would never end",
  finished: "the schedule has ended",
};

/** The reason in words; one that we do not know is shown as it is. */
export function reasonText(reason: string | null | undefined): string | null {
  if (!reason) return null;
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as keyof typeof REASONS] : reason.replaceAll("_", " ");
}
