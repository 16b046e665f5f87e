// What a backfill would do or did, counted, and how far its runs have come.
import type { Schemas } from "../../api/client";
import { RUN_LOOKS, SKIPPED, type Look } from "../../marks/outcomes";

type Filled = Schemas["Filled"];

export interface Filling {
  /** They begin at once. */
  start: number;
  /** They wait for those before them. */
  wait: number;
  skip: number;
}

export function fillingOf(rows: readonly Filled[]): Filling {
  const many = (outcome: Filled["outcome"]): number => rows.filter((row) => row.outcome === outcome).length;
  return { start: many("started"), wait: many("buffered"), skip: many("skipped") };
}

/** "12 runs would be made: 1 at once, 11 one after the other. 3 would be skipped." */
export function fillingWords(answer: Pick<Schemas["Backfilled"], "results" | "dry_run" | "stopped">): string {
  const { start, wait, skip } = fillingOf(answer.results);
  const would = answer.dry_run ? "would be" : start + wait === 1 ? "was" : "were";
  const skipped = answer.dry_run ? "would be" : skip === 1 ? "was" : "were";
  const runs = start + wait;
  const how = wait > 0 ? `: ${start} at once, ${wait} one after the other` : "";
  const texts = [
    runs === 0
      ? `No run ${answer.dry_run ? "would be" : "was"} made.`
      : `${runs} ${runs === 1 ? "run" : "runs"} ${would} made${how}.`,
    skip > 0 ? `${skip} ${skipped} skipped.` : "",
    answer.stopped ? "The schedule runs out of runs before the window ends." : "",
  ];
  return texts.filter(Boolean).join(" ");
}

export function filledLook(row: Filled): Look {
  if (row.outcome === "skipped") return SKIPPED;
  return row.outcome === "buffered"
    ? { ...RUN_LOOKS.held, word: "after those before it" }
    : { ...RUN_LOOKS.ready, word: "at once" };
}

/** A run in one of these has not ended. */
export const OPEN = ["ready", "launching", "queued", "running", "held", "awaiting_approval"] as const;

export interface Progress {
  runs: number;
  over: number;
  /** Not all open ones were listed: fewer than `over` may be over. */
  isAtMost: boolean;
}

/** Of the runs that a backfill made: all but those that are still open. */
export function progressOf(
  made: readonly Filled[],
  open: { runs: readonly { run_id: string | null }[]; next_page_token: string | null },
): Progress {
  const wanted = new Set(made.flatMap((row) => (row.run_id ? [row.run_id] : [])));
  const waiting = open.runs.filter((run) => run.run_id !== null && wanted.has(run.run_id)).length;
  return { runs: wanted.size, over: wanted.size - waiting, isAtMost: open.next_page_token !== null };
}
