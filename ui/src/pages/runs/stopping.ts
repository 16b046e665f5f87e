// How many runs are stopped: a page after the other until the last one, and what came of it so far.
import type { Schemas } from "../../api/client";
import { addedTo, mostFirst, type Counts } from "./counted";

type Stop = Schemas["BulkStop"];
export type StopPage = Pick<Schemas["BulkStops"], "outcomes" | "next_page_token">;

const MOST_SHOWN = 20;

export type Phase = "asking" | "working" | "halting" | "halted" | "failed" | "done";

export interface Standing {
  phase: Phase;
  /** Where it goes on: null = at the beginning, or nowhere once it is done. */
  token: string | null;
  counts: Counts;
  /** Those that could not be stopped, with why; no more than can be read. */
  wrong: readonly Stop[];
  wrongs: number;
  failure: Error | null;
}

export const BEFORE: Standing = {
  phase: "asking",
  token: null,
  counts: new Map(),
  wrong: [],
  wrongs: 0,
  failure: null,
};

export function withPage(before: Standing, page: StopPage): Standing {
  const wrong = page.outcomes.filter((each) => each.message);
  return {
    ...before,
    phase: page.next_page_token === null ? "done" : before.phase,
    token: page.next_page_token,
    counts: addedTo(
      before.counts,
      page.outcomes.map((each) => each.outcome.replaceAll("_", " ")),
    ),
    wrong: [...before.wrong, ...wrong].slice(0, MOST_SHOWN),
    wrongs: before.wrongs + wrong.length,
  };
}

/** From where it stands to the end, unless it is halted between two pages: after a failure the same page is asked again. */
export async function stopOn(
  from: Standing,
  ask: (token: string | null) => Promise<StopPage>,
  seen: (now: Standing) => void,
  isHalted: () => boolean,
): Promise<void> {
  let now: Standing = { ...from, phase: "working", failure: null };
  seen(now);
  try {
    while (now.phase === "working") {
      now = withPage(now, await ask(now.token));
      if (now.phase === "working" && isHalted()) now = { ...now, phase: "halted" };
      seen(now);
    }
  } catch (failure) {
    seen({ ...now, phase: "failed", failure: failure as Error });
  }
}

const numberText = (many: number) => many.toLocaleString("en");

/** "1,200 cancelled, 3 cancel requested": the most frequent first. */
export function standingText({ phase, counts }: Standing): string {
  const text = mostFirst(counts)
    .map(([word, many]) => `${numberText(many)} ${word}`)
    .join(", ");
  switch (phase) {
    case "working":
    case "halting":
      return `So far: ${text || "nothing yet"}`;
    case "halted":
    case "failed":
      return `Not all of them: ${text || "nothing yet"}. There are more.`;
    default:
      return text || "nothing was left to stop";
  }
}
