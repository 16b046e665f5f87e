// The look and the text of an event in the history of a schedule.
import type { Schemas } from "../api/client";
import { HELD, MISSED, SKIPPED, STATUS_LOOKS, reasonText, type Look } from "../marks/outcomes";
import { SCHEDULE_EVENTS } from "../words";

export type HistoryEvent = Schemas["HistoryEvent"];

const LOOKS: Readonly<Record<string, Look>> = {
  ScheduleCreated: { word: SCHEDULE_EVENTS.ScheduleCreated, tone: "accent", shape: "ring" },
  ScheduleUpdated: { word: SCHEDULE_EVENTS.ScheduleUpdated, tone: "accent", shape: "ring" },
  SchedulePaused: STATUS_LOOKS.paused,
  ScheduleResumed: { word: SCHEDULE_EVENTS.ScheduleResumed, tone: "ok", shape: "ring" },
  ScheduleTriggered: { word: SCHEDULE_EVENTS.ScheduleTriggered, tone: "ok", shape: "disc" },
  ScheduleTriggerSkipped: SKIPPED,
  ScheduleBuffered: HELD,
  ScheduleMissed: MISSED,
  ScheduleBroken: STATUS_LOOKS.broken,
  ScheduleDeleted: STATUS_LOOKS.deleted,
  ScheduleApprovalBypassAttempted: {
    word: SCHEDULE_EVENTS.ScheduleApprovalBypassAttempted,
    tone: "warn",
    shape: "question",
  },
};

/** The look of an event; an unknown type is shown by its name. */
export function eventLook(event: Pick<HistoryEvent, "event_type">): Look {
  return LOOKS[event.event_type] ?? { word: event.event_type, tone: "quiet", shape: "dot" };
}

/** The detail of an event: its recorded text, its error, or its reason. */
export function eventWhy(payload: Readonly<Record<string, unknown>>): string | null {
  if (typeof payload["detail"] === "string" && payload["detail"] !== "") return payload["detail"];
  if (typeof payload["error"] === "string" && payload["error"] !== "") return payload["error"];
  const changed = payload["changed_fields"];
  if (Array.isArray(changed) && changed.length > 0) return `Changed: ${changed.map(String).join(", ")}`;
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

/** Return whether an event of the stream belongs to this schedule. */
export function isAbout(data: string, scheduleId: string): boolean {
  try {
    const told = JSON.parse(data) as { schedule_id?: unknown } | null;
    return told?.schedule_id === scheduleId;
  } catch {
    return false;
  }
}
