// The schedules that fit, in pages that come as somebody scrolls, and what is known of those that are doing badly.
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { ask, type Ask, type Schemas } from "../../api/client";
import { useRead, type Failure } from "../../api/hooks";
import { useEvents } from "../../api/live";
import { useNamespace } from "../../api/session";
import { queryOf, type Filters } from "./filters";

export type Row = Schemas["Schedule"];
type Page = Schemas["ScheduleList"];
type Query = Ask<"/api/schedules", "get">["query"];

const PAGE_SIZE = 100;
/** Ten thousand rows: who looks for one among more is quicker with the search. */
const MOST_PAGES = 100;
/** So few are asked for again when something happens; whoever has read on is not disturbed. */
const LIVE_PAGES = 2;
const REFRESH_MS = 4_000;

export function useSchedules(filters: Filters) {
  const namespace = useNamespace();
  const query = queryOf(filters);
  const found = useInfiniteQuery<Page, Failure, { pages: Page[] }, readonly unknown[], string | null>({
    queryKey: [namespace, "/api/schedules", query, "recent"],
    queryFn: async ({ pageParam, signal }) => {
      const asked = { ...query, include: "recent", page_size: PAGE_SIZE, next_page_token: pageParam } as Query;
      return (await ask("get", "/api/schedules", { query: asked }, { namespace, signal })).answer;
    },
    initialPageParam: null,
    getNextPageParam: (last, all) => (all.length < MOST_PAGES ? (last.next_page_token ?? undefined) : undefined),
    placeholderData: keepPreviousData,
    staleTime: REFRESH_MS,
    refetchOnWindowFocus: (asked) =>
      ((asked.state.data as { pages: Page[] } | undefined)?.pages.length ?? 0) <= LIVE_PAGES,
  });
  const pages = found.data?.pages;
  const isLive = (pages?.length ?? 0) <= LIVE_PAGES;
  useRefresh(isLive, found.refetch);
  const rows = useMemo(() => pages?.flatMap((page) => page.schedules) ?? [], [pages]);
  return { ...found, rows, isLive, isCut: pages?.length === MOST_PAGES && Boolean(pages.at(-1)?.next_page_token) };
}

/** A busy fleet tells of hundreds of things a second: one of them in a few seconds is reason enough. */
function useRefresh(isLive: boolean, refetch: () => unknown): void {
  const planned = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(planned.current), []);
  useEvents(
    useCallback(() => {
      if (!isLive) return;
      planned.current ??= setTimeout(() => {
        planned.current = undefined;
        void refetch();
      }, REFRESH_MS);
    }, [isLive, refetch]),
  );
}

/** By id: how those are doing that somebody should look at. One bounded answer for the whole list. */
export function useHealth(): ReadonlyMap<string, Schemas["ScheduleHealth"]> {
  const found = useRead(
    "/api/health/schedules",
    { query: { unwell: true } },
    { live: false, everySeconds: 30, staleSeconds: 10 },
  );
  return useMemo(() => new Map(found.data?.schedules.map((each) => [each.schedule_id, each])), [found.data]);
}
