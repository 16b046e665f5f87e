// The refresh of live queries: many events become one refresh, and a pending request is never discarded.
import type { Query, QueryClient } from "@tanstack/react-query";
import { Refused } from "./client";
import { isGone } from "./gone";

// A busy fleet sends hundreds of events per second; refresh at most this often.
const REFRESH_MS = 1_000;
// The minimum time for which a refusal is shown, as a new request would show a loading state.
const REFUSED_MS = 10_000;

/** A hidden page only marks queries as stale; they are refreshed when the page is visible again. */
export function refresher(queries: QueryClient, isHidden = () => document.hidden): () => void {
  let planned: ReturnType<typeof setTimeout> | undefined;
  const waitedFor = new Set<string>();
  const again = (query: Query) =>
    queries.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType: isHidden() ? "none" : "active" });
  const refresh = () => {
    planned = undefined;
    for (const query of queries.getQueryCache().findAll({ predicate: isLive })) {
      if (query.state.fetchStatus !== "fetching") void again(query);
      else if (!waitedFor.has(query.queryHash)) {
        // Do not restart a pending request: with frequent events a slow answer would never arrive. It may be older than
        // the event, so request it again afterwards.
        waitedFor.add(query.queryHash);
        void ended(queries, query).then(() => {
          waitedFor.delete(query.queryHash);
          return isGone(query) ? undefined : again(query);
        });
      }
    }
  };
  return () => {
    planned ??= setTimeout(refresh, REFRESH_MS);
  };
}

function isLive(query: Query): boolean {
  return query.meta?.["live"] === true && !isGone(query) && !isJustRefused(query);
}

/** Return whether the refusal is all that the query shows. */
function isJustRefused({ state: { status, data, error, errorUpdatedAt } }: Query): boolean {
  const isNote = status === "error" && data === undefined && error instanceof Refused;
  return isNote && Date.now() - errorUpdatedAt < REFUSED_MS;
}

/** Wait until the pending fetch ends. */
function ended(queries: QueryClient, query: Query): Promise<void> {
  return new Promise((done) => {
    const stop = queries.getQueryCache().subscribe((event) => {
      if (event.query !== query || (event.type !== "removed" && query.state.fetchStatus === "fetching")) return;
      stop();
      done();
    });
  });
}
