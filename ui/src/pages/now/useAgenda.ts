// What the service says of the hours in view: those before now and those from now on are asked for apart, so that a past
// full of runs does not take the room of what is to come.
import { useCallback, useEffect, useMemo, useRef } from "react";
import type { Schemas } from "../../api/client";
import { useRead, type Failure } from "../../api/hooks";
import { useConnection, useEvents } from "../../api/live";
import type { Span } from "../../time/axis";
import { bucketSeconds, countedSeconds, outward } from "./density";
import type { Row } from "./groups";
import { joined, type LaneSchedule } from "./lanes";

export interface Filter {
  text: string;
  label: string;
  /** Only what was decided for this reason; nothing is predicted then. */
  reason: string;
}

export interface Fleet {
  rows: readonly Row[];
  /** Starts by the minute. */
  buckets: readonly Schemas["AgendaBucket"][];
  /** How long a bar is, and where they begin. */
  bucketSeconds: number;
  origin: number;
  schedules: Readonly<Record<string, LaneSchedule>>;
  /** Hours of which not everything could be shown. */
  gaps: readonly Span[];
}

type Part = Schemas["Agenda"];

const MOST_ROWS = 5_000;

export function useAgenda(span: Span, zone: string, now: number, filter: Filter) {
  const seconds = bucketSeconds(span);
  const wide = outward(span, seconds, zone);
  const border = Math.min(wide.to, Math.max(wide.from, outward({ from: now, to: now }, seconds, zone).from));
  const past = usePart({ from: wide.from, to: border }, seconds, filter);
  const coming = usePart({ from: border, to: wide.to }, seconds, filter);
  const nearFrom = nearStart({ from: wide.from, to: border }, past.data, seconds);
  const near = usePart({ from: nearFrom ?? border, to: border }, seconds, filter);
  const again = useAgain(past.refetch, coming.refetch, near.refetch);
  useCalmRefresh(again, past.isFetching || coming.isFetching || near.isFetching);
  const fleet = useMemo(
    () => fleetOf(past.data, nearFrom === null ? undefined : near.data, coming.data, seconds),
    [past.data, nearFrom, near.data, coming.data, seconds],
  );
  const isThere = [past, coming].every((each) => each.data !== undefined || !each.enabled);
  return {
    fleet: isThere ? fleet : null,
    failure: (past.error ?? coming.error ?? near.error) as Failure | null,
    again,
  };
}

function usePart(span: Span, seconds: number, filter: Filter) {
  const query = {
    from: new Date(span.from).toISOString(),
    to: new Date(span.to).toISOString(),
    limit: MOST_ROWS,
    bucket_seconds: countedSeconds(seconds),
    text: filter.text || undefined,
    label: filter.label ? [filter.label] : undefined,
    reason: (filter.reason || undefined) as Schemas["Reason"] | undefined,
  };
  const enabled = span.to > span.from;
  const found = useRead("/api/agenda", { query }, { live: false, keep: true, enabled, staleSeconds: 2 });
  const { refetch } = found;
  return {
    ...found,
    enabled,
    data: enabled ? found.data : undefined,
    refetch: () => (enabled ? refetch() : undefined),
  };
}

/** Of a past that is too full the earliest rows were given: those just before now are asked for apart, from here on. */
export function nearStart(
  past: Span,
  answer: Pick<Part, "truncated" | "rows"> | undefined,
  seconds: number,
): number | null {
  const last = answer?.truncated ? answer.rows.at(-1) : undefined;
  if (last === undefined) return null;
  const shown = Date.parse(last.at) - past.from;
  const size = seconds * 1_000;
  const begin = Math.ceil((Date.parse(last.at) - past.from) / size) * size + past.from;
  const from = Math.max(begin, past.to - Math.max(size, Math.floor((0.8 * shown) / size) * size));
  return from < past.to ? from : null;
}

export function fleetOf(
  past: Part | undefined,
  near: Part | undefined,
  coming: Part | undefined,
  seconds: number,
): Fleet {
  const parts = [past, near, coming].filter((each) => each !== undefined);
  const gaps: Span[] = [];
  for (const [index, part] of parts.entries()) {
    const last = part.rows.at(-1);
    if (part.truncated)
      gaps.push({ from: Date.parse(last?.at ?? part.start), to: Date.parse(parts[index + 1]?.start ?? part.end) });
  }
  return {
    rows: joined([...parts.map((each) => each.under_way ?? []), ...parts.map((each) => each.rows)]),
    buckets: parts.flatMap((each) => each.buckets),
    bucketSeconds: seconds,
    origin: Date.parse(parts[0]?.start ?? "") || 0,
    schedules: Object.assign(
      Object.create(null) as object,
      ...parts.map((each) => each.schedules),
    ) as Fleet["schedules"],
    gaps,
  };
}

function useAgain(...all: (() => unknown)[]): () => void {
  const latest = useRef(all);
  latest.current = all;
  return useCallback(() => {
    for (const each of latest.current) void each();
  }, []);
}

// The agenda of a large fleet is work for the service: it is asked for again at most so often, less where it takes long.
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
