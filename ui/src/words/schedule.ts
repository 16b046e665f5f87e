// Texts of the schedule pages that several of their files share.
import type { Schemas } from "../api/client";
import { OVERLAPS } from "./policies";

export const NO_RUNS = "No runs yet";
export const NO_UPCOMING = "No upcoming runs";

/** Columns of tables of occurrences. */
export const OCCURRENCE_COLUMNS = {
  at: "Scheduled for",
  outcome: "Outcome",
  inputs: "Inputs",
  run: "Run",
} as const;

/** The link from an occurrence to its run. */
export const VIEW_RUN = "View run";

/** With the overlap policy `skip`, a backfill runs the occurrences of its window in sequence. */
export const BACKFILL_OVERLAP_CHOICES: readonly (readonly [value: Schemas["OverlapPolicy"] | "", label: string])[] = [
  ["", "Use schedule policy"],
  ["skip", "Run in sequence"],
  ["allow_all", OVERLAPS.allow_all],
  ["cancel_other", OVERLAPS.cancel_other],
  ["terminate_other", OVERLAPS.terminate_other],
];

/** The source of a schedule: managed by a template or bundle, or created by a user. */
export const SOURCE_TEXTS: Readonly<Record<Schemas["Source"], string>> = { template: "Managed", runtime: "Manual" };
