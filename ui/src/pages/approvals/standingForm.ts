// What somebody writes to agree beforehand, put into the words of the service; pure.
import type { Choice } from "../../parts/Field";

export interface StandingDraft {
  of: "schedule" | "workflow";
  id: string;
  gates: string;
  /** A length of time from now, as the service reads it; empty = without end. */
  lasts: string;
  uses: string;
  reason: string;
}

export const EMPTY_STANDING: StandingDraft = {
  of: "schedule",
  id: "",
  gates: "",
  lasts: "7d",
  uses: "",
  reason: "",
};

export const LASTS: readonly Choice[] = [
  ["1h", "an hour"],
  ["1d", "a day"],
  ["7d", "a week"],
  ["30d", "30 days"],
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

export function standingOf(draft: StandingDraft): StandingSent {
  const id = draft.id.trim();
  return {
    ...(draft.of === "schedule" ? { schedule_id: id } : { workflow_id: id }),
    gates: [...new Set(draft.gates.split(/[,\s]+/).filter(Boolean))],
    until: draft.lasts || undefined,
    max_uses: draft.uses.trim() === "" ? undefined : Number(draft.uses),
    reason: draft.reason.trim() || undefined,
  };
}
