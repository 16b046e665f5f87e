// What is deleted is not asked for again: its page is still shown until somebody has left it, and would be told 404.
import type { Query, QueryClient } from "@tanstack/react-query";

type Names = Readonly<Record<string, unknown>>;

// What ends with it, where that is not just all below its path. A schedule leaves its past behind, and its page shows
// that; how well it does nobody can say any more. An agent is a workspace, too.
const ENDS: Readonly<Record<string, readonly string[]>> = {
  "/api/schedules/{schedule_id}": ["/api/schedules/{schedule_id}/health"],
  "/api/agents/{agent_id}": ["/api/agents/{agent_id}", "/workspaces/{workspace_id}"],
};

// When it went. An answer that is younger is about something new of the same name.
const gone = new WeakMap<Query, number>();

/** Whether a query is about this very thing, or about a part of it. */
export function isAbout(queryKey: readonly unknown[], namespace: string, path: string, names: Names): boolean {
  const [where, asked, given] = queryKey;
  if (where !== namespace || typeof asked !== "string") return false;
  const ends = ENDS[path] ?? [path];
  if (!ends.some((each) => asked === each || asked.startsWith(`${each}/`))) return false;
  const its = Object.values((given as { path?: Names } | undefined)?.path ?? {});
  return Object.values(names).every((value) => its.includes(value));
}

/**
 * From now on; whoever is refused calls what comes back, and it is there again.
 *
 * What is being asked is given up: an answer from before would look like something new, and one from after is 404.
 */
export function letGo(queries: QueryClient, namespace: string, path: string, names: Names): () => void {
  const itsOwn = { predicate: (each: Query) => isAbout(each.queryKey, namespace, path, names) };
  const found = queries.getQueryCache().findAll(itsOwn);
  void queries.cancelQueries(itsOwn);
  for (const query of found) gone.set(query, query.state.dataUpdatedAt);
  return () => {
    for (const query of found) gone.delete(query);
  };
}

export function isGone(query: Query): boolean {
  const since = gone.get(query);
  return since !== undefined && query.state.dataUpdatedAt <= since;
}
