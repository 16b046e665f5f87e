// Parses a date/time input on the server.
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { ask, Refused } from "../../api/client";
import { useNamespace } from "../../api/session";
import { useSettled } from "../../parts/useSettled";

export interface Understood {
  /** Parsed instant; null = pending or invalid. */
  at: string | null;
  wrong: readonly string[] | null;
}

/** An offset such as `-24h` is parsed once, so that the displayed instant is the one sent. */
function reading(namespace: string, scheduleId: string, text: string) {
  const given = { path: { schedule_id: scheduleId }, query: { at: text } };
  return queryOptions<string, Error>({
    queryKey: [namespace, "moment", scheduleId, text],
    queryFn: async ({ signal }) =>
      (await ask("get", "/api/schedules/{schedule_id}/explain", given, { namespace, signal })).answer.at,
    staleTime: Infinity,
    gcTime: 5_000, // A click and the field share one answer.
    retry: (times, wrong) => !(wrong instanceof Refused) && times < 2,
    refetchOnWindowFocus: false,
  });
}

export function useMoment(scheduleId: string, text: string): Understood {
  const written = text.trim();
  const settled = useSettled(written);
  const found = useQuery({ ...reading(useNamespace(), scheduleId, settled), enabled: settled !== "" });
  if (settled !== written || settled === "") return { at: null, wrong: null };
  return { at: found.data ?? null, wrong: found.error ? wrongsOf(found.error) : null };
}

export function wrongsOf(failure: Error): readonly string[] {
  return failure instanceof Refused ? (failure.errors["at"] ?? [failure.message]) : [failure.message];
}

/** Parse an input immediately, without the typing delay. */
export function useReadMoment(scheduleId: string): (text: string) => Promise<string> {
  const namespace = useNamespace();
  const queries = useQueryClient();
  return (text) => queries.fetchQuery(reading(namespace, scheduleId, text.trim()));
}
