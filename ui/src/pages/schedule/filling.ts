// Counts and progress of a backfill.
import type { Schemas } from "../../api/client";
import { RUN_LOOKS, SKIPPED, type Look } from "../../marks/outcomes";
import { counted } from "../../words";

type Filled = Schemas["Filled"];

export interface Filling {
  /** Runs that start immediately. */
  start: number;
  /** Buffered runs. */
  wait: number;
  skip: number;
}

export function fillingOf(rows: readonly Filled[]): Filling {
  const many = (outcome: Filled["outcome"]): number => rows.filter((row) => row.outcome === outcome).length;
  return { start: many("started"), wait: many("buffered"), skip: many("skipped") };
}

/** "12 runs would be created: 1 immediate, 11 buffered. 3 occurrences would be skipped." */
export function fillingWords(answer: Pick<Schemas["Backfilled"], "results" | "dry_run" | "stopped">): string {
  const { start, wait, skip } = fillingOf(answer.results);
  const would = answer.dry_run ? "would be " : "";
  const runs = start + wait;
  const how = wait > 0 ? `: ${start} immediate, ${wait} buffered` : "";
  const texts = [
    `${runs === 0 ? "No runs" : counted(runs, "run")} ${would}created${how}.`,
    skip > 0 ? `${counted(skip, "occurrence")} ${would}skipped.` : "",
    answer.stopped ? "The schedule reaches its max runs before the end of the window." : "",
  ];
  return texts.filter(Boolean).join(" ");
}

export function filledLook(row: Filled): Look {
  if (row.outcome === "skipped") return SKIPPED;
  return row.outcome === "buffered" ? RUN_LOOKS.held : { ...RUN_LOOKS.ready, word: "Immediate" };
}

/** States of runs that have not ended. */
export const OPEN = ["ready", "launching", "queued", "running", "held", "awaiting_approval"] as const;

export interface Progress {
  runs: number;
  over: number;
  /** Not all open runs were listed, so `over` is an upper bound. */
  isAtMost: boolean;
}

/** Count the runs of a backfill that have ended. */
export function progressOf(
  made: readonly Filled[],
  open: { runs: readonly { run_id: string | null }[]; next_page_token: string | null },
): Progress {
  const wanted = new Set(made.flatMap((row) => (row.run_id ? [row.run_id] : [])));
  const waiting = open.runs.filter((run) => run.run_id !== null && wanted.has(run.run_id)).length;
  return { runs: wanted.size, over: wanted.size - waiting, isAtMost: open.next_page_token !== null };
}
