// What is asked for before anything is drawn: who one is, and at once what the page of the address shows first.
import type { QueryClient } from "@tanstack/react-query";
import { sessionQuery } from "../api/session";
import { firstQueryOf } from "../pages/schedules/pageQuery";

interface Place {
  pathname: string;
  search: Readonly<Record<string, unknown>>;
}

/** Whatever goes wrong here is told where the same is asked for again. */
export async function askEarly(queries: QueryClient, { pathname, search }: Place): Promise<void> {
  const session = await queries.fetchQuery(sessionQuery).catch(() => null);
  if (!session?.permissions.includes("read")) return;
  const namespace = typeof search["ns"] === "string" ? search["ns"] : session.namespace;
  if (pathname === "/schedules") await queries.prefetchQuery(firstQueryOf(namespace, search));
}
