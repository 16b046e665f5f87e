// Loads the matching schedules: pages in view are refreshed, distant pages are unloaded.
import { skipToken, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Refused, type Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { useConnection, useEvents } from "../../api/live";
import { useNamespace } from "../../api/session";
import { answered, lengthOf, NOTHING_SEEN, pagesWanted, rowsOf, withoutStale, type Chain, type Range } from "./chain";
import { queryOf, statusesCounted, type Filters } from "./filters";
import { chainKeyOf, firstQuery, pageKeyOf, pageQuery, REFRESH_MS, type List } from "./pageQuery";

export type Row = Schemas["Schedule"];

const STALE = "stale_schedule_page_token";

export function useSchedules(filters: Filters) {
  const { list, isWaiting } = useList(filters);
  const [range, setRange] = useState<Range>({ first: 0, last: 0 });
  const { chain, rows, error, again } = usePages(list, range);
  useRefresh(again);
  const hasMore = chain.next !== undefined;
  const total = useTotal(filters, hasMore && chain.count > 0);
  return {
    chain,
    rows,
    error,
    again,
    setRange,
    /** Rows of the previous filters are shown until the first page arrives. */
    isWaiting,
    /** Rows seen before keep their places while they are loaded again. */
    isPending: chain.seen.length === 0 && chain.expected === 0 && error === null,
    length: lengthOf(chain, total?.count ?? null),
    /** null = unknown. */
    total: hasMore ? total : { count: chain.count, isBounded: false },
  };
}

function useList(filters: Filters): { list: List; isWaiting: boolean } {
  const namespace = useNamespace();
  const text = JSON.stringify(queryOf(filters));
  const wanted = useMemo<List>(() => ({ namespace, query: JSON.parse(text) as List["query"] }), [namespace, text]);
  const [shown, setShown] = useState(wanted);
  const isWaiting = shown !== wanted;
  const begun = useQuery({ ...firstQuery(wanted), enabled: isWaiting });
  if (isWaiting && (begun.data || begun.error)) setShown(wanted);
  return { list: shown, isWaiting };
}

/** The chain is kept in the query cache, so returning to the list restores the position. */
function usePages(list: List, range: Range) {
  const queries = useQueryClient();
  const { data: kept = NOTHING_SEEN } = useQuery<Chain>({
    queryKey: chainKeyOf(list),
    queryFn: skipToken,
    initialData: NOTHING_SEEN,
    staleTime: Infinity,
    structuralSharing: false, // Too long to compare at each step
  });
  const wanted = pagesWanted(kept, range);
  const answers = useQueries({ queries: wanted.map((each) => pageQuery(list, each)) });
  const both = wanted.map(({ cursor }, index) => ({ cursor, ...answers[index]! }));
  const chain = both.reduce((known, { cursor, data }) => (data ? answered(known, cursor, data) : known), kept);
  useLayoutEffect(() => {
    if (chain !== kept) queries.setQueryData(chainKeyOf(list), chain);
  });
  const stale = both.find(({ error }) => error instanceof Refused && error.reason === STALE);
  useEffect(() => {
    if (stale === undefined) return;
    const shorter = withoutStale(chain, stale.cursor);
    queries.setQueryData(chainKeyOf(list), shorter);
    void queries.resetQueries({ queryKey: pageKeyOf(list, shorter.next ?? null) });
    queries.removeQueries({ queryKey: pageKeyOf(list, stale.cursor) });
  });
  const failed = both.find(({ error }) => error !== null && error !== stale?.error);
  const refetch = useLatest(() => both.forEach((each) => void each.refetch()));
  return {
    chain,
    rows: both.flatMap(({ cursor, data }, index) => (data && wanted[index]!.whole ? rowsOf(chain, cursor, data) : [])),
    error: failed?.error ?? null,
    again: refetch,
  };
}

function useLatest(work: () => void): () => void {
  const latest = useRef(work);
  useLayoutEffect(() => {
    latest.current = work;
  });
  return useCallback(() => latest.current(), []);
}

/** Throttle refreshes, because a busy service sends hundreds of events per second. */
function useRefresh(again: () => void): void {
  const planned = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(planned.current), []);
  const refresh = useCallback(() => {
    planned.current ??= setTimeout(() => {
      planned.current = undefined;
      if (!document.hidden) again();
    }, REFRESH_MS);
  }, [again]);
  useEvents(refresh);
  // Refresh after a reconnect: changes may have been missed, and the next event may be hours away.
  const connection = useConnection();
  const wasOpen = useRef(connection === "open");
  const wasLost = useRef(false);
  useEffect(() => {
    if (connection === "open" && wasLost.current) again();
    else if (connection === "open" && !wasOpen.current) refresh();
    wasOpen.current = connection === "open";
    wasLost.current = connection === "lost" || (wasLost.current && connection !== "open");
  }, [connection, again, refresh]);
}

export interface Total {
  count: number;
  /** `count` is a lower bound. */
  isBounded: boolean;
}

/** Total number of matches where the server counts them; loaded after the first rows. */
function useTotal(filters: Filters, enabled: boolean): Total | null {
  const statuses = statusesCounted(filters);
  const { data } = useRead(
    "/api/overview",
    {},
    { live: false, enabled: enabled && statuses !== null, everySeconds: 60 },
  );
  if (data === undefined || statuses === null) return null;
  return {
    count: statuses.reduce((sum, status) => sum + data.schedules[status], 0),
    isBounded: statuses.some((status) => data.bounded.includes(`schedules.${status}`)),
  };
}

/** Health of schedules that need attention, by ID. One bounded answer for the whole list. */
export function useHealth(): ReadonlyMap<string, Schemas["ScheduleHealth"]> {
  const found = useRead(
    "/api/health/schedules",
    { query: { unwell: true } },
    { live: false, everySeconds: 30, staleSeconds: 10 },
  );
  return useMemo(() => new Map(found.data?.schedules.map((each) => [each.schedule_id, each])), [found.data]);
}
