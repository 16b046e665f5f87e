// Deleted objects are not requested again: their page stays open until the user leaves it, and would get 404.
import type { Query, QueryClient } from "@tanstack/react-query";

type Names = Readonly<Record<string, unknown>>;

// The paths that end with an object, if not all paths below it. The history of a deleted schedule stays readable, its
// health does not. An agent is also a workspace.
const ENDS: Readonly<Record<string, readonly string[]>> = {
  "/api/schedules/{schedule_id}": ["/api/schedules/{schedule_id}/health"],
  "/api/agents/{agent_id}": ["/api/agents/{agent_id}", "/workspaces/{workspace_id}"],
};

// The time of the deletion. A newer answer belongs to a new object of the same name.
const gone = new WeakMap<Query, number>();

/** Return whether a query belongs to the object or a part of it. */
export function isAbout(queryKey: readonly unknown[], namespace: string, path: string, names: Names): boolean {
  const [where, asked, given] = queryKey;
  if (where !== namespace || typeof asked !== "string") return false;
  const ends = ENDS[path] ?? [path];
  if (!ends.some((each) => asked === each || asked.startsWith(`${each}/`))) return false;
  const its = Object.values((given as { path?: Names } | undefined)?.path ?? {});
  return Object.values(names).every((value) => its.includes(value));
}

/**
 * Mark an object as deleted; if the deletion fails, call the returned function to undo this.
 *
 * Pending requests are cancelled: an answer from before would look like a new object, and one from after is a 404.
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
