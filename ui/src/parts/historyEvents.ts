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

/** The number after which the next page begins, whether or not there is more now: history only grows. */
export function nextAfter(page: Pick<Schemas["History"], "events" | "next_cursor">, after: number): number {
  return page.next_cursor ?? page.events.at(-1)?.sequence ?? after;
}

/** One answer, and the number after which it was asked for. */
export interface Read {
  page: Schemas["History"];
  after: number;
}

/**
 * Pages of at most `most` events, however few of them each answer brought: what is told one by one would else be asked
 * for again one by one.
 */
export function folded(pages: readonly Read[], most: number): Read[] {
  const found: Read[] = [];
  for (const each of pages) {
    const before = found.at(-1);
    if (before === undefined || before.page.events.length + each.page.events.length > most) found.push(each);
    else {
      const events = [...before.page.events, ...each.page.events];
      found[found.length - 1] = { page: { ...each.page, events }, after: before.after };
    }
  }
  return found;
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
