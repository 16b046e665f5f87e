// The look of each state: a label, a tone and a shape, so that colour is never the only difference.
import type { Schemas } from "../api/client";
import { FORECASTS, HEALTH, MISSED_TEXT, RUN_STATES, SCHEDULE_STATUSES } from "../words";

export { CERTAINTY as CERTAINTY_TEXTS, reasonText } from "../words";

export type Tone = "ok" | "bad" | "warn" | "info" | "hold" | "quiet" | "accent";
export type Shape =
  | "disc" // done
  | "half" // in progress
  | "cross" // failed
  | "alert" // broken schedule, failed check
  | "diamond" // skipped
  | "triangle" // missed
  | "bars" // buffered
  | "question" // awaiting approval
  | "ring" // scheduled
  | "dash" // will skip
  | "slash" // cancelled
  | "dot"; // starting

export interface Look {
  word: string;
  tone: Tone;
  shape: Shape;
}

export const RUN_LOOKS: Record<Schemas["RunState"], Look> = {
  ready: { word: RUN_STATES.ready, tone: "info", shape: "dot" },
  launching: { word: RUN_STATES.launching, tone: "info", shape: "half" },
  queued: { word: RUN_STATES.queued, tone: "info", shape: "dot" },
  running: { word: RUN_STATES.running, tone: "info", shape: "half" },
  held: { word: RUN_STATES.held, tone: "hold", shape: "bars" },
  awaiting_approval: { word: RUN_STATES.awaiting_approval, tone: "warn", shape: "question" },
  succeeded: { word: RUN_STATES.succeeded, tone: "ok", shape: "disc" },
  failed: { word: RUN_STATES.failed, tone: "bad", shape: "cross" },
  launch_failed: { word: RUN_STATES.launch_failed, tone: "bad", shape: "cross" },
  timed_out: { word: RUN_STATES.timed_out, tone: "bad", shape: "cross" },
  unknown: { word: RUN_STATES.unknown, tone: "bad", shape: "cross" },
  skipped: { word: RUN_STATES.skipped, tone: "quiet", shape: "diamond" },
  cancelled: { word: RUN_STATES.cancelled, tone: "quiet", shape: "slash" },
  terminated: { word: RUN_STATES.terminated, tone: "quiet", shape: "slash" },
  rejected: { word: RUN_STATES.rejected, tone: "quiet", shape: "slash" },
  expired: { word: RUN_STATES.expired, tone: "warn", shape: "slash" },
};

export const MISSED: Look = { word: MISSED_TEXT, tone: "warn", shape: "triangle" };
export const SKIPPED: Look = RUN_LOOKS.skipped;
export const HELD: Look = RUN_LOOKS.held;
export const WILL_FIRE: Look = { word: FORECASTS.dispatch, tone: "accent", shape: "ring" };
export const WILL_SKIP: Look = { word: FORECASTS.skip, tone: "quiet", shape: "dash" };

export const HEALTH_LOOKS: Record<Schemas["HealthStatus"], Look> = {
  ok: { word: HEALTH.ok, tone: "ok", shape: "disc" },
  failing: { word: HEALTH.failing, tone: "bad", shape: "cross" },
  late: { word: HEALTH.late, tone: "warn", shape: "triangle" },
  stale: { word: HEALTH.stale, tone: "warn", shape: "triangle" },
  broken: { word: HEALTH.broken, tone: "bad", shape: "alert" },
  never_run: { word: HEALTH.never_run, tone: "quiet", shape: "ring" },
  paused: { word: HEALTH.paused, tone: "quiet", shape: "bars" },
  waiting_for_approval: { word: HEALTH.waiting_for_approval, tone: "warn", shape: "question" },
};

export const STATUS_LOOKS: Record<Schemas["Status"], Look> = {
  active: { word: SCHEDULE_STATUSES.active, tone: "ok", shape: "disc" },
  paused: { word: SCHEDULE_STATUSES.paused, tone: "quiet", shape: "bars" },
  broken: { word: SCHEDULE_STATUSES.broken, tone: "bad", shape: "alert" },
  finished: { word: SCHEDULE_STATUSES.finished, tone: "quiet", shape: "slash" },
  deleted: { word: SCHEDULE_STATUSES.deleted, tone: "quiet", shape: "slash" },
};

/** Return the look of an agenda row, which is decided or predicted. */
export function agendaLook(row: Pick<Schemas["AgendaRow"], "decision" | "predicted" | "state" | "reason">): Look {
  if (row.predicted) return row.decision === "dispatch" ? WILL_FIRE : WILL_SKIP;
  if (row.state) return RUN_LOOKS[row.state];
  return row.reason === "missed" || row.reason === "catchup_cap"
    ? MISSED
    : row.decision === "dispatch"
      ? RUN_LOOKS.ready
      : SKIPPED;
}
