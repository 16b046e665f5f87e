// What the service makes of a document that nobody has saved yet.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { changeOf, type Change, type Doc } from "../../document/document";

/**
 * Named by the document itself, so the answer to an older question is never taken for that to a newer one. Until the
 * newer one comes, the older one stays in sight as a placeholder, and says so.
 */
export function useDraft(document: Doc, before: Doc, scheduleId: string | null) {
  const namespace = useNamespace();
  const change: Change = scheduleId === null ? { how: "parts", body: document } : changeOf(before, document);
  return useQuery<Schemas["ScheduleDraft"], Failure>({
    queryKey: [namespace, "draft", scheduleId, change],
    queryFn: async ({ signal }) =>
      (
        await ask(
          "post",
          "/api/schedules/draft",
          {
            query: {
              n: 10,
              ...(scheduleId === null ? {} : { schedule_id: scheduleId, ...howOf(change) }),
            },
            body: change.body as never,
          },
          { namespace, signal },
        )
      ).answer,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
}

function howOf({ how }: Change) {
  return { merge: how === "merge", whole: how === "whole" };
}
