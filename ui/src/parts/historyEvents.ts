// What an event of a schedule's history says at a glance: its word, its mark, why, and the run that it is about.
import type { Schemas } from "../api/client";
import { HELD, MISSED, SKIPPED, STATUS_LOOKS, reasonText, type Look } from "../marks/outcomes";

export type HistoryEvent = Schemas["HistoryEvent"];

const LOOKS: Readonly<Record<string, Look>> = {
  ScheduleCreated: { word: "created", tone: "accent", shape: "ring" },
  ScheduleUpdated: { word: "updated", tone: "accent", shape: "ring" },
  SchedulePaused: STATUS_LOOKS.paused,
  ScheduleResumed: { word: "resumed", tone: "ok", shape: "ring" },
  ScheduleTriggered: { word: "triggered", tone: "ok", shape: "disc" },
  ScheduleTriggerSkipped: SKIPPED,
  ScheduleBuffered: HELD,
  ScheduleMissed: MISSED,
  ScheduleBroken: STATUS_LOOKS.broken,
  ScheduleDeleted: STATUS_LOOKS.deleted,
  ScheduleApprovalBypassAttempted: { word: "tried to go without a yes", tone: "warn", shape: "question" },
};

/** A kind of event that is newer than this page is shown under the name that it has. */
export function eventLook(event: Pick<HistoryEvent, "event_type">): Look {
  return LOOKS[event.event_type] ?? { word: event.event_type, tone: "quiet", shape: "dot" };
}

/** Why, as far as the event says it: the sentence that was written down, else the reason in words. */
export function eventWhy(payload: Readonly<Record<string, unknown>>): string | null {
  if (typeof payload["detail"] === "string" && payload["detail"] !== "") return payload["detail"];
  if (typeof payload["error"] === "string" && payload["error"] !== "") return payload["error"];
  const changed = payload["changed_fields"];
  if (Array.isArray(changed) && changed.length > 0) return `changed: ${changed.map(String).join(", ")}`;
  return typeof payload["reason"] === "string" ? reasonText(payload["reason"]) : null;
}

type Page = Schemas["History"];

/** The highest sequence in pages that begin with the newest event. */
export function newestOf(pages: readonly Page[]): number {
  return pages[0]?.events[0]?.sequence ?? 0;
}

/** Add events, oldest first, before the newest event of the first page. */
export function withNewer(pages: readonly Page[], newer: readonly HistoryEvent[]): Page[] {
  const [first, ...rest] = pages;
  if (first === undefined) return [];
  const unknown = newer.filter(({ sequence }) => sequence > newestOf(pages));
  return [{ ...first, events: [...unknown.reverse(), ...first.events] }, ...rest];
}

/** Whether what the stream told is about this schedule. */
export function isAbout(data: string, scheduleId: string): boolean {
  try {
    const told = JSON.parse(data) as { schedule_id?: unknown } | null;
    return told?.schedule_id === scheduleId;
  } catch {
    return false;
  }
}
