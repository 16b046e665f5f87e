// What somebody writes to agree beforehand, put into the words of the service; pure.
import type { Choice } from "../../parts/Field";

export interface StandingDraft {
  of: "schedule" | "workflow";
  id: string;
  gates: string;
  /** Seconds from now; empty = without end. */
  lasts: string;
  uses: string;
  reason: string;
}

export const EMPTY_STANDING: StandingDraft = {
  of: "schedule",
  id: "",
  gates: "",
  lasts: "604800",
  uses: "",
  reason: "",
};

export const LASTS: readonly Choice[] = [
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
  ["2592000", "30 days"],
  ["", "until it is revoked"],
];

export interface StandingSent {
  schedule_id?: string;
  workflow_id?: string;
  gates: string[];
  until?: string;
  max_uses?: number;
  reason?: string;
}

/** `now` is the service's. */
export function standingOf(draft: StandingDraft, now: number): StandingSent {
  const id = draft.id.trim();
  return {
    ...(draft.of === "schedule" ? { schedule_id: id } : { workflow_id: id }),
    gates: [...new Set(draft.gates.split(/[,\s]+/).filter(Boolean))],
    until: draft.lasts === "" ? undefined : new Date(now + Number(draft.lasts) * 1000).toISOString(),
    max_uses: draft.uses.trim() === "" ? undefined : Number(draft.uses),
    reason: draft.reason.trim() || undefined,
  };
}
