// Validation and preview of an unsaved schedule document.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { changeOf, type Change, type Doc } from "../../document/document";

/**
 * Query the draft endpoint. The query key contains the document, so an answer always belongs to its document; the
 * previous answer is shown as a placeholder until the next one arrives.
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
            body: change.body,
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
