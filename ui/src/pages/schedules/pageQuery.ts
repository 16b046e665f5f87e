// Queries of the pages of the list, shared with the prefetch.
import { ask, type Ask, type Schemas } from "../../api/client";
import { NOTHING_SEEN, pagesWanted, type Cursor, type Wanted } from "./chain";
import { filtersOf, queryOf } from "./filters";

type Page = Schemas["ScheduleList"];
type Query = Ask<"/api/schedules", "get">["query"];

export const REFRESH_MS = 4_000;
/** Time that the rows of an invisible page are kept. */
const LET_GO_MS = 15_000;

/** One filter in one namespace. */
export interface List {
  namespace: string;
  query: Readonly<Record<string, unknown>>;
}

const keyOf = ({ namespace, query }: List) => [namespace, "/api/schedules", query] as const;
export const chainKeyOf = (list: List) => [...keyOf(list), "chain"] as const;
export const pageKeyOf = (list: List, cursor: Cursor) => [...keyOf(list), "page", cursor] as const;

export function pageQuery(list: List, { cursor, size, whole }: Wanted) {
  const asked = { ...list.query, include: whole ? "recent" : null, page_size: size, next_page_token: cursor } as Query;
  return {
    queryKey: [...pageKeyOf(list, cursor), whole],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Page> =>
      (await ask("get", "/api/schedules", { query: asked }, { namespace: list.namespace, signal })).answer,
    staleTime: REFRESH_MS,
    gcTime: whole ? LET_GO_MS : 0,
  };
}

/** First page of an unloaded list. */
export function firstQuery(list: List) {
  return pageQuery(list, pagesWanted(NOTHING_SEEN, { first: 0, last: 0 })[0]!);
}

/** First page for the search parameters of the URL. */
export function firstQueryOf(namespace: string, search: Readonly<Record<string, unknown>>) {
  return firstQuery({ namespace, query: queryOf(filtersOf(search)) });
}
