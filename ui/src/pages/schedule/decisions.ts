// Recorded and predicted decisions of a schedule as rows of one type.
import type { Schemas } from "../../api/client";
import { agendaLook, reasonText, WILL_FIRE, WILL_SKIP, type Look } from "../../marks/outcomes";
import { evidence } from "../../parts/evidence";
import { isoDay } from "../../time/zones";

export interface DecisionRow {
  at: string;
  look: Look;
  reason: string | null;
  /** Details of the reason, one per line. */
  details: readonly string[];
  /** Index of the rotating input, from 0. */
  rotationIndex: number | null;
  inputs: unknown;
  inputsOmitted: boolean;
  runId: string | null;
  /** Number of missed occurrences that the row covers. */
  count: number;
  /** Due time with jitter, if it differs. */
  due: string | null;
  /** Certainty of a prediction; null = recorded decision. */
  certainty: Schemas["Certainty"] | null;
  /** Explains the decision, its certainty, and what moved the instant. */
  sentence: string | null;
  moved: boolean;
}

export function foreseen(row: Schemas["PreviewRow"]): DecisionRow {
  const fires = row.decision === "dispatch";
  return {
    at: row.tick_at,
    look: fires ? WILL_FIRE : WILL_SKIP,
    reason: reasonText(row.reason),
    details: fires ? [] : evidence(row.reason ?? "", row.detail),
    rotationIndex: row.rotation_index,
    inputs: row.prompt ? { prompt: row.prompt, inputs: row.inputs ?? undefined } : (row.inputs ?? null),
    inputsOmitted: row.inputs_omitted ?? false,
    runId: null,
    count: 1,
    due: row.due === row.tick_at ? null : row.due,
    certainty: row.certainty,
    sentence: row.sentence,
    moved: (row.moved ?? []).length > 0,
  };
}

export function taken(row: Schemas["AgendaRow"]): DecisionRow {
  return {
    at: row.at,
    look: agendaLook(row),
    reason: reasonText(row.reason),
    details: [],
    rotationIndex: null,
    inputs: null,
    inputsOmitted: false,
    runId: row.run_id ?? null,
    count: row.count ?? 1,
    due: null,
    certainty: row.certainty ?? null,
    sentence: row.sentence ?? null,
    moved: (row.moved ?? []).length > 0,
  };
}

/** Return the rows of one day in the schedule's time zone. */
export function ofDay(rows: readonly DecisionRow[], day: string, zone: string): DecisionRow[] {
  return rows.filter((row) => isoDay(row.at, zone) === day);
}

/** Return whether a row has inputs to show. */
export function hasInputs(row: DecisionRow): boolean {
  if (row.inputsOmitted) return true;
  if (row.inputs === null || row.inputs === undefined) return false;
  return typeof row.inputs !== "object" || Object.keys(row.inputs).length > 0;
}
