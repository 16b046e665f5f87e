// The agenda of the visible hours: pages of lanes, so that a dense schedule hides no other one, or the rows of one
// reason.
import { useCallback, useEffect, useMemo, useRef } from "react";
import type { Schemas } from "../../api/client";
import { usePages, useRead } from "../../api/hooks";
import { useConnection, useEvents } from "../../api/live";
import { SHORTEST_SPAN, type Span } from "../../time/axis";
import { bucketSeconds, countedSeconds, outward } from "./density";
import type { Row } from "./groups";
import { joined, type LaneSchedule, type SentLane } from "./lanes";

export interface Filter {
  text: string;
  label: string;
  /** Only decisions with this reason, without predictions. */
  reason: string;
}

export interface Fleet {
  rows: readonly Row[];
  /** The lane of each schedule; null = only rows were requested. */
  lanes: readonly SentLane[] | null;
  /** Starts of all schedules, by `countedSeconds`. */
  buckets: readonly Schemas["AgendaBucket"][];
  countedSeconds: number;
  /** The length of a bar and the start of the first one. */
  bucketSeconds: number;
  origin: number;
  schedules: Readonly<Record<string, LaneSchedule>>;
  /** Not all schedules, or not all rows of the reason, are loaded. */
  isCut: boolean;
}

type Part = Schemas["Agenda"];

const MOST_ROWS = 5_000;
/** The lanes that are loaded automatically: lanes of a page times pages. */
const LANES_OF_A_PAGE = 100;
const MOST_PAGES = 20;

export function useAgenda(span: Span, zone: string, filter: Filter) {
  const bar = bucketSeconds(span);
  const wide = outward(span, bar, zone);
  const query = {
    from: new Date(wide.from).toISOString(),
    to: new Date(wide.to).toISOString(),
    bucket_seconds: countedSeconds(bar),
    text: filter.text || undefined,
    label: filter.label ? [filter.label] : undefined,
  };
  const found = useLanePages({ ...query, limit: rowsOfALane(wide) }, JSON.stringify(filter), filter.reason === "");
  const only = useRead(
    "/api/agenda",
    { query: { ...query, limit: MOST_ROWS, reason: (filter.reason || undefined) as Schemas["Reason"] | undefined } },
    { live: false, keep: true, enabled: filter.reason !== "", staleSeconds: 2 },
  );
  const [parts, isCut] =
    filter.reason === ""
      ? [found.pages, found.isCut]
      : [only.data === undefined ? null : [only.data], only.data?.truncated ?? false];
  const again = useAgain(filter.reason === "" ? found.refetch : only.refetch);
  useCalmRefresh(again, found.isFetching || only.isFetching);
  const fleet = useMemo(() => (parts === null ? null : fleetOf(parts, bar, isCut)), [parts, bar, isCut]);
  return {
    fleet,
    failure: found.error ?? only.error,
    again,
    more: found.hasMore ? found.loadMore : null,
  };
}

/** The maximum of single marks in a lane; a lane with more has bars, unless the view is at maximum zoom. */
function rowsOfALane(span: Span): number {
  return span.to - span.from <= 2 * SHORTEST_SPAN ? 1_000 : 100;
}

type LaneQuery = { from: string; to: string; bucket_seconds: number; limit: number; text?: string; label?: string[] };

/** Keep the previous lanes until all pages of the new hours are loaded. */
function useLanePages(query: LaneQuery, about: string, enabled: boolean) {
  const given = { query: { ...query, lanes: true, lane_limit: LANES_OF_A_PAGE } };
  const found = usePages("/api/agenda", given, { live: false, keep: true, enabled, staleSeconds: 2 });
  const { data, hasNextPage, isFetching, isPlaceholderData, isError, fetchNextPage } = found;
  const pages = enabled && data !== undefined ? data.pages : null;
  const isWhole = pages !== null && (!hasNextPage || pages.length >= MOST_PAGES);
  useEffect(() => {
    if (pages !== null && !isWhole && !isFetching && !isError) void fetchNextPage();
  }, [pages, isWhole, isFetching, isError, fetchNextPage]);
  const whole = useRef<{ about: string; pages: readonly Part[] } | null>(null);
  if (pages !== null && isWhole && !isPlaceholderData) whole.current = { about, pages };
  const shown = pages === null ? null : isWhole || whole.current?.about !== about ? pages : whole.current.pages;
  return {
    pages: shown,
    isCut: hasNextPage && isWhole,
    hasMore: hasNextPage && isWhole,
    isFetching,
    error: found.error,
    refetch: found.refetch,
    loadMore: () => void fetchNextPage(),
  };
}

export function fleetOf(parts: readonly Part[], bar: number, isCut: boolean): Fleet {
  const lanes = parts.some((each) => each.lanes) ? parts.flatMap((each) => each.lanes ?? []) : null;
  return {
    rows: joined([...parts.map((each) => each.under_way ?? []), ...parts.map((each) => each.rows)]),
    lanes,
    buckets: summed(parts),
    countedSeconds: countedSeconds(bar),
    bucketSeconds: bar,
    origin: Date.parse(parts[0]?.start ?? "") || 0,
    schedules: Object.assign(
      Object.create(null) as object,
      ...parts.map((each) => each.schedules),
    ) as Fleet["schedules"],
    isCut,
  };
}

/** Each page counts its own schedules. */
function summed(parts: readonly Part[]): Schemas["AgendaBucket"][] {
  if (parts.length === 1) return parts[0]!.buckets;
  const found = new Map<string, Schemas["AgendaBucket"]>();
  for (const { buckets } of parts)
    for (const { at, starts, skips } of buckets) {
      const known = found.get(at);
      found.set(at, { at, starts: starts + (known?.starts ?? 0), skips: skips + (known?.skips ?? 0) });
    }
  return [...found.values()];
}

function useAgain(...all: (() => unknown)[]): () => void {
  const latest = useRef(all);
  latest.current = all;
  return useCallback(() => {
    for (const each of latest.current) void each();
  }, []);
}

// The agenda of a large fleet is expensive: the refresh interval has a minimum and grows with the response time.
const CALM_MS = 2_000;
const CALM_TIMES = 8;

function useCalmRefresh(again: () => void, isFetching: boolean): void {
  const began = useRef(0);
  const took = useRef(0);
  const planned = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (isFetching) began.current = performance.now();
    else took.current = performance.now() - began.current;
  }, [isFetching]);
  const refresh = useCallback(() => {
    planned.current ??= setTimeout(
      () => {
        planned.current = undefined;
        if (!document.hidden) again();
      },
      Math.max(CALM_MS, Math.min(took.current * CALM_TIMES, 60_000)),
    );
  }, [again]);
  useEffect(() => () => clearTimeout(planned.current), []);
  useEvents(refresh);
  const connection = useConnection();
  useEffect(() => {
    if (connection === "open") refresh();
  }, [connection, refresh]);
}
