// Texts of a row of the list.
import type { Schemas } from "../../api/client";
import { HEALTH_LOOKS, STATUS_LOOKS, reasonText, type Look } from "../../marks/outcomes";
import { isolated } from "../../parts/isolated";
import { ASSIGNEE_TYPES, NO_UPCOMING, SOURCE_TEXTS } from "../../words";
import type { Row } from "./useSchedules";

export function nameOf(row: Pick<Row, "name" | "schedule_id">): string {
  return row.name || row.schedule_id;
}

/** Time zone of a spec; UTC by default, as on the server. */
export function zoneOf(row: Pick<Row, "spec">): string {
  const zone = (row.spec as { timezone?: unknown }).timezone;
  return typeof zone === "string" ? zone : "UTC";
}

/** Expressions of the spec, one per line. */
export function specText({ spec }: Pick<Row, "spec">): string {
  const {
    cron_expressions: crons,
    intervals,
    timezone,
  } = spec as { cron_expressions?: unknown; intervals?: unknown; timezone?: unknown };
  const lines = [
    ...(Array.isArray(crons) ? crons.map(String) : []),
    ...(Array.isArray(intervals) ? intervals.map((each) => JSON.stringify(each)) : []),
  ];
  return lines.length === 0
    ? JSON.stringify(spec)
    : [...lines, ...(typeof timezone === "string" ? [timezone] : [])].join("\n");
}

export interface Sign {
  look: Look;
  text: string;
  /** Tooltip. */
  more: string | null;
}

/** Badges for problems, most important first; none for a healthy schedule. */
export function signsOf(row: Row, health: Schemas["ScheduleHealth"] | undefined): Sign[] {
  const signs: Sign[] = [];
  if (row.status !== "active")
    signs.push({ look: STATUS_LOOKS[row.status], text: STATUS_LOOKS[row.status].word, more: whyAtRest(row, health) });
  if (health && health.status !== row.status) {
    signs.push({ look: HEALTH_LOOKS[health.status], text: HEALTH_LOOKS[health.status].word, more: health.sentence });
  }
  if (row.consecutive_failures > 0 && health?.status !== "failing") {
    const many = row.consecutive_failures;
    signs.push({
      look: { ...HEALTH_LOOKS.failing, word: "Last run failed" },
      text: many === 1 ? "Last run failed" : `Last ${many} runs failed`,
      more: row.last_error_message,
    });
  }
  return signs;
}

function whyAtRest(row: Row, health: Schemas["ScheduleHealth"] | undefined): string | null {
  if (row.status === "broken") return health?.sentence ?? row.last_error_message;
  if (row.status !== "paused") return null;
  return (
    [row.pause_reason && isolated(row.pause_reason), row.paused_by ? `by ${isolated(row.paused_by)}` : null]
      .filter(Boolean)
      .join(" · ") || null
  );
}

/** Source and assignee of a schedule. */
export function originsOf(row: Row): string[] {
  const { assignee_type: kind, assignee_id: id } = row as unknown as { assignee_type?: unknown; assignee_id?: unknown };
  const origins: string[] = [];
  if (row.bundle) origins.push(`Bundle ${row.bundle}`);
  else if (row.source === "template") origins.push(SOURCE_TEXTS.template);
  if (typeof id === "string" && id !== "")
    origins.push(`${kind === "team" ? ASSIGNEE_TYPES.team : ASSIGNEE_TYPES.agent} ${id}`);
  return origins;
}

/** Reason why there is no next run. */
export function whyNoNext(row: Row): string {
  if (row.status === "active") return reasonText(row.next_run_reason) ?? NO_UPCOMING;
  return STATUS_LOOKS[row.status].word;
}
