// One action on many schedules: its preview, and its pages.
import { useQuery } from "@tanstack/react-query";
import { ask, type Ask, type Schemas } from "../api/client";
import type { Failure } from "../api/hooks";
import { useNamespace } from "../api/session";
import { A_PAGE, BEGINNING, MOST_COUNTED, itemOf, stepOf, type Cursor, type Many, type Service } from "./bulk";
import type { NextPage } from "./jobs";
import type { ActionName, End, Labels } from "./wishes";

export interface BulkWish extends Partial<End> {
  action: ActionName;
  reason?: string | null;
  labels?: Labels;
}

type ListQuery = Ask<"/api/schedules", "get">["query"];

interface How {
  dryRun: boolean;
  /** Called with the end of the pauses that the service computed. */
  onUntil?: (until: string) => void;
  confirm?: boolean;
  key?: string;
}

function serviceFor(namespace: string, wish: BulkWish, how: How): Service {
  return {
    change: async (choice, token) => {
      const body = {
        ...wish,
        ...(choice === "all" ? { all: true } : { filter: choice }),
        dry_run: how.dryRun,
        next_page_token: token,
      };
      const given = { query: { confirm: how.confirm ?? false }, body };
      const extra = { namespace, idempotencyKey: how.key };
      const { answer } = await ask("post", "/api/schedules/bulk", given, extra);
      if (answer.until) how.onUntil?.(answer.until);
      return answer;
    },
    list: async (query, token) => {
      const given = { query: { ...query, page_size: A_PAGE, next_page_token: token } as ListQuery };
      const { answer } = await ask("get", "/api/schedules", given, { namespace });
      return {
        ids: answer.schedules.map((each: Schemas["Schedule"]) => each.schedule_id),
        next_page_token: answer.next_page_token,
      };
    },
  };
}

export interface Preview {
  count: number;
  atLeast: boolean;
  ids: readonly string[];
}

/** The number of affected schedules and the first of them, from a dry run of the same request. */
export function useBulkPreview(many: Many, action: ActionName) {
  const namespace = useNamespace();
  return useQuery<Preview, Failure>({
    queryKey: [namespace, "bulk preview", many, action],
    queryFn: async ({ signal }) => {
      // A dry run of labels needs labels, but the selection does not depend on them: a pause selects the same schedules.
      const service = serviceFor(namespace, { action: action === "label" ? "pause" : action }, { dryRun: true });
      let found: Preview = { count: 0, atLeast: false, ids: [] };
      for (let at: Cursor | null = BEGINNING; at !== null && !signal.aborted;) {
        // A deletion needs the exact number, which the user enters.
        if (found.count >= MOST_COUNTED && action !== "delete") return { ...found, atLeast: true };
        const step: Awaited<ReturnType<typeof stepOf>> = await stepOf(many, at, service);
        found = {
          ...found,
          count: found.count + step.outcomes.length,
          ids: [...found.ids, ...step.outcomes.map((each) => each.schedule_id)],
        };
        at = step.next;
      }
      return found;
    },
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
}

/** The instant at which a pause would end, from a dry run. */
export function useUnderstood(end: End | null) {
  const namespace = useNamespace();
  return useQuery<string | null, Failure>({
    queryKey: [namespace, "bulk preview", "until", end],
    queryFn: async ({ signal }) => {
      const body = { action: "pause", all: true, limit: 1, dry_run: true, ...end } as const;
      return (await ask("post", "/api/schedules/bulk", { body }, { namespace, signal })).answer.until ?? null;
    },
    enabled: end?.until != null,
    retry: false,
    gcTime: 0,
  });
}

/** The pages of one action on many schedules, in order. */
export function schedulePages(many: Many, namespace: string, wish: BulkWish, key: string): NextPage {
  let at: Cursor = BEGINNING;
  let until: string | null = null;
  return async (confirm) => {
    const same = until === null ? wish : { ...wish, until, timezone: undefined };
    const how = { dryRun: false, confirm, key, onUntil: (end: string) => void (until = end) };
    const { outcomes, next } = await stepOf(many, at, serviceFor(namespace, same, how));
    at = next ?? at;
    return { items: outcomes.map(itemOf), isLast: next === null, until };
  };
}
