// A bulk action on schedules: pages of at most 100, each with its outcomes.
import type { Schemas } from "../api/client";
import { reasonText } from "../marks/outcomes";
import type { Item } from "./jobs";

export const A_PAGE = 100;
/** The number at which a preview stops counting and shows "at least". */
export const MOST_COUNTED = 1_000;

export type Changed = Pick<Schemas["BulkChange"], "schedule_id" | "outcome" | "reason" | "message">;

/** The filters that the bulk route supports. */
export type Choice = Partial<Pick<Schemas["ScheduleChoice"], "ids" | "labels" | "name_contains" | "status">>;

/** The selection: ids, a filter of the bulk route, or the query of a list. */
export type Many =
  | { kind: "ids"; ids: readonly string[] }
  | { kind: "filter"; choice: Choice | "all" }
  | { kind: "listed"; query: Readonly<Record<string, unknown>> };

interface Listed {
  ids: string[];
  next_page_token?: string | null;
}

/** The position of the next page; `listed` is a page that was read ahead. */
export type Cursor = { index: number; token: string | null; listed?: Listed };
export const BEGINNING: Cursor = { index: 0, token: null };

/** The two requests of a bulk action, which tests replace. */
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

/** The counted ids if all were counted: schedules that match only since then were never shown to the user. */
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
