// Hooks that read and write. The key of a query is its namespace, path and arguments, so one rule refreshes all.
import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import { useRef } from "react";
import { useSay } from "../parts/Toasts";
import type { paths } from "./schema";
import { ask, type Answer, type Ask, type Extra, type PathsOf, type Refused, type Unreachable } from "./client";
import { isGone, letGo } from "./gone";
import { useNamespace } from "./session";
import { freshKey, wishOf, type Wish } from "./wishKey";

export type Failure = Refused | Unreachable;

interface Reading<A = never> {
  /** Refresh on events of the stream; false for lists that users read for long. */
  live?: boolean;
  enabled?: boolean;
  /** Keep the last answer while the next one loads. */
  keep?: boolean;
  /** Poll, for changes without an event; null = stop. */
  everySeconds?: number | ((answer: A | undefined) => number | null);
  staleSeconds?: number;
}

/** Read one answer of the service. */
export function useRead<P extends PathsOf<"get">>(
  path: P,
  given: Ask<P, "get">,
  { live = true, enabled = true, keep = false, everySeconds, staleSeconds }: Reading<Answer<P, "get">> = {},
): UseQueryResult<Answer<P, "get">, Failure> {
  const namespace = useNamespace();
  return useQuery<Answer<P, "get">, Failure>({
    queryKey: [namespace, path, given],
    queryFn: async ({ signal }) => (await ask("get", path, given, { namespace, signal })).answer,
    meta: { live },
    enabled,
    placeholderData: keep ? keepPreviousData : undefined,
    refetchInterval: ({ state }) => {
      const seconds = typeof everySeconds === "function" ? everySeconds(state.data) : everySeconds;
      return seconds ? seconds * 1000 : false;
    },
    staleTime: (staleSeconds ?? 1) * 1000,
  });
}

/** Read one answer with its ETag for a later write. */
export function useTagged<P extends PathsOf<"get">>(
  path: P,
  given: Ask<P, "get">,
  { live = true, enabled = true }: Reading = {},
) {
  const namespace = useNamespace();
  return useQuery<{ answer: Answer<P, "get">; etag: string | null }, Failure>({
    queryKey: [namespace, path, given, "tagged"],
    queryFn: ({ signal }) => ask("get", path, given, { namespace, signal }),
    meta: { live },
    enabled,
  });
}

interface Paged {
  next_page_token?: string | null;
}

/** Read pages linked by `next_page_token`. */
export function usePages<P extends PathsOf<"get">>(
  path: P,
  given: Ask<P, "get">,
  { live = true, enabled = true, keep = false, staleSeconds }: Reading = {},
) {
  const namespace = useNamespace();
  return useInfiniteQuery<Answer<P, "get">, Failure, { pages: Answer<P, "get">[] }, readonly unknown[], string | null>({
    queryKey: [namespace, path, given, "pages"],
    queryFn: async ({ pageParam, signal }) => {
      const wider = { ...given, query: { ...(given as { query?: object }).query, next_page_token: pageParam } };
      return (await ask("get", path, wider as Ask<P, "get">, { namespace, signal })).answer;
    },
    initialPageParam: null,
    getNextPageParam: (last) => (last as Paged).next_page_token ?? undefined,
    meta: { live },
    enabled,
    placeholderData: keep ? keepPreviousData : undefined,
    staleTime: staleSeconds === undefined ? undefined : staleSeconds * 1000,
  });
}

/**
 * Write, then refresh all visible data.
 *
 * A retry after a lost answer carries the same idempotency key, so it is applied once. A failure is reported at once.
 * Warnings of the answer are shown as messages. A deleted object is not requested again.
 */
export function useWrite<P extends PathsOf<V>, V extends "post" | "put" | "patch" | "delete">(verb: V, path: P) {
  const namespace = useNamespace();
  const queries = useQueryClient();
  const unanswered = useRef<Wish | null>(null);
  const say = useSay();
  const again = () => queries.invalidateQueries({ predicate: (query) => !isGone(query) });
  return useMutation<Answer<P, V>, Failure, Ask<P, V> & { extra?: Extra }, (() => void) | undefined>({
    onMutate: (given) => {
      if (verb !== "delete") return undefined;
      return letGo(queries, namespace, path, { ...(given as { path?: object }).path });
    },
    mutationFn: async ({ extra, ...given }) => {
      unanswered.current = wishOf(unanswered.current, given, freshKey);
      const idempotencyKey = verb === "post" ? unanswered.current.key : undefined;
      const { answer } = await ask(verb, path, given as unknown as Ask<P, V>, { namespace, idempotencyKey, ...extra });
      unanswered.current = null;
      return answer;
    },
    onSuccess: (answer) => {
      for (const warning of warningsOf(answer)) say(warning, "warn");
      return again();
    },
    onError: (_failure, _given, back) => {
      back?.();
      void again();
    },
  });
}

/** The warnings of an object or schedule, or of each change of a bundle. */
function warningsOf(answer: unknown): readonly string[] {
  const found = (answer as { warnings?: unknown } | undefined)?.warnings;
  return Array.isArray(found) ? (found as string[]) : [];
}

export type { paths };
