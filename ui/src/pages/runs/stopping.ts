// The pages of a bulk cancellation or termination of runs.
import type { Schemas } from "../../api/client";
import type { NextPage } from "../../parts/jobs";

export type StopPage = Pick<Schemas["BulkStops"], "outcomes" | "next_page_token">;

export function stopPages(ask: (token: string | null) => Promise<StopPage>): NextPage {
  let token: string | null = null;
  return async () => {
    const { outcomes, next_page_token: next } = await ask(token);
    token = next;
    const items = outcomes.map(({ run_id: id, outcome, message }) => ({ id, outcome, failure: message || null }));
    return { items, isLast: next === null };
  };
}

export function runsText(count: number): string {
  return count === 1 ? "1 run" : `${count.toLocaleString("en")} runs`;
}
