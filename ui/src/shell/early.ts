// Request the session and the first data of the page before the first render.
import type { QueryClient } from "@tanstack/react-query";
import { sessionQuery } from "../api/session";
import { firstQueryOf } from "../pages/schedules/pageQuery";

interface Place {
  pathname: string;
  search: Readonly<Record<string, unknown>>;
}

/** Failures are reported when the page sends the same request again. */
export async function askEarly(queries: QueryClient, { pathname, search }: Place): Promise<void> {
  const session = await queries.fetchQuery(sessionQuery).catch(() => null);
  if (!session?.permissions.includes("read")) return;
  const namespace = typeof search["ns"] === "string" ? search["ns"] : session.namespace;
  if (pathname === "/schedules") await queries.prefetchQuery(firstQueryOf(namespace, search));
}
