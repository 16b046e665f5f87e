// How one thing is done to many schedules: a page of at most a hundred after the other, and what came of it so far.
import type { Schemas } from "../api/client";
import { reasonText } from "../marks/outcomes";
import type { Item } from "./jobs";

export const A_PAGE = 100;
/** How far a preview counts; it says so where there are more. */
export const MOST_COUNTED = 1_000;

export type Changed = Pick<Schemas["BulkChange"], "schedule_id" | "outcome" | "reason" | "message">;

/** What the bulk route itself can choose by. */
export type Choice = Partial<Pick<Schemas["ScheduleChoice"], "ids" | "labels" | "name_contains" | "status">>;

/** Which ones: these ids, all that the service's own filter chooses, or all of a list that only the list can filter. */
export type Many =
  | { kind: "ids"; ids: readonly string[] }
  | { kind: "filter"; choice: Choice | "all" }
  | { kind: "listed"; query: Readonly<Record<string, unknown>> };

interface Listed {
  ids: string[];
  next_page_token?: string | null;
}

/** Where it goes on; `listed` is the page that was read already. */
export type Cursor = { index: number; token: string | null; listed?: Listed };
export const BEGINNING: Cursor = { index: 0, token: null };

/** The two questions that it takes, so that they can be answered by somebody else in a test. */
export interface Service {
  change: (
    choice: Choice | "all",
    token: string | null,
  ) => Promise<{ outcomes: readonly Changed[]; next_page_token?: string | null }>;
  list: (query: Readonly<Record<string, unknown>>, token: string | null) => Promise<Listed>;
}

export interface Step {
  outcomes: readonly Changed[];
  /** null = that was the last page. */
  next: Cursor | null;
}

export async function stepOf(many: Many, at: Cursor, service: Service): Promise<Step> {
  switch (many.kind) {
    case "ids": {
      const ids = [...many.ids.slice(at.index, at.index + A_PAGE)];
      const { outcomes } = ids.length === 0 ? { outcomes: [] } : await service.change({ ids }, null);
      const index = at.index + ids.length;
      return { outcomes, next: index < many.ids.length ? { index, token: null } : null };
    }
    case "filter": {
      const { outcomes, next_page_token: token } = await service.change(many.choice, at.token);
      return { outcomes, next: token ? { index: 0, token } : null };
    }
    case "listed": {
      const { ids, next_page_token: token } = at.listed ?? (await service.list(many.query, at.token));
      // A page begins after the last row of the one before: it is read before that row may be gone.
      const listed = token ? await service.list(many.query, token) : null;
      const { outcomes } = ids.length === 0 ? { outcomes: [] } : await service.change({ ids }, null);
      return { outcomes, next: token && listed ? { index: 0, token, listed } : null };
    }
  }
}

/** Those that were counted, where all were: what has come to fit since then was seen by nobody. */
export function countedOf(many: Many, counted: { ids: readonly string[]; atLeast: boolean } | undefined): Many {
  return counted === undefined || counted.atLeast ? many : { kind: "ids", ids: counted.ids };
}

const FAILURES: ReadonlySet<string> = new Set(["failed", "skipped", "buffer_full"]);

export function itemOf({ schedule_id: id, outcome, reason, message }: Changed): Item {
  if (!FAILURES.has(outcome)) return { id, outcome, failure: null };
  return { id, outcome, failure: message ?? reasonText(reason) ?? outcome.replaceAll("_", " ") };
}

export function manyText(many: Many): string {
  return many.kind === "ids" ? schedulesText(many.ids.length) : "all matching schedules";
}

export function schedulesText(count: number): string {
  return count === 1 ? "1 schedule" : `${count.toLocaleString("en")} schedules`;
}
