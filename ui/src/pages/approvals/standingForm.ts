// The form of a standing approval and its request body. Pure functions.
import type { Choice } from "../../parts/Field";

export interface StandingDraft {
  of: "schedule" | "workflow";
  id: string;
  gates: string;
  /** A duration from now, which the service parses; empty = no end. */
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
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["", "Until revoked"],
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
