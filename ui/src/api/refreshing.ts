// When live queries are asked for again: many events become one refresh, and no answer is thrown away for a newer one.
import type { Query, QueryClient } from "@tanstack/react-query";
import { Refused } from "./client";
import { isGone } from "./gone";

// A busy fleet tells hundreds of things a second; nobody reads faster than this.
const REFRESH_MS = 1_000;
// What was refused is told so long at least: asked for again at each event, it would look as if it were on its way.
const REFUSED_MS = 10_000;

/** A hidden page asks for nothing: what is marked as old here is asked for when somebody looks at it again. */
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
        // An answer that takes longer than the events are apart would never come if each of them began anew. It may be
        // older than the event, so it is asked for once more when it is there.
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

/** Only where nothing else is shown in its place. */
function isJustRefused({ state: { status, data, error, errorUpdatedAt } }: Query): boolean {
  const isNote = status === "error" && data === undefined && error instanceof Refused;
  return isNote && Date.now() - errorUpdatedAt < REFUSED_MS;
}

/** When the fetch that is under way has ended, well or not. */
function ended(queries: QueryClient, query: Query): Promise<void> {
  return new Promise((done) => {
    const stop = queries.getQueryCache().subscribe((event) => {
      if (event.query !== query || (event.type !== "removed" && query.state.fetchStatus === "fetching")) return;
      stop();
      done();
    });
  });
}
