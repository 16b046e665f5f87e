// What is deleted is not asked for again: its page is still shown until somebody has left it, and would be told 404.
import type { Query, QueryClient } from "@tanstack/react-query";

type Names = Readonly<Record<string, unknown>>;

// When it went. An answer that is younger is about something new of the same name.
const gone = new WeakMap<Query, number>();

/** Whether a query is about this very thing, or about a part of it. */
export function isAbout(queryKey: readonly unknown[], namespace: string, path: string, names: Names): boolean {
  const [where, asked, given] = queryKey;
  if (where !== namespace || typeof asked !== "string") return false;
  if (asked !== path && !asked.startsWith(`${path}/`)) return false;
  const its = (given as { path?: Names } | undefined)?.path ?? {};
  return Object.entries(names).every(([name, value]) => its[name] === value);
}

/** From now on; whoever is refused calls what comes back, and it is there again. */
export function letGo(queries: QueryClient, namespace: string, path: string, names: Names): () => void {
  const found = queries
    .getQueryCache()
    .findAll({ predicate: (each) => isAbout(each.queryKey, namespace, path, names) });
  for (const query of found) gone.set(query, query.state.dataUpdatedAt);
  return () => {
    for (const query of found) gone.delete(query);
  };
}

export function isGone(query: Query): boolean {
  const since = gone.get(query);
  return since !== undefined && query.state.dataUpdatedAt <= since;
}
