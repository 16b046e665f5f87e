// Text editor of a workflow document with its graph and validation results.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ask, Refused, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import type { Doc } from "../../document/document";
import { TextSide } from "../../document/TextSide";
import { Graph } from "../../parts/Graph";
import { FailureNote } from "../../parts/Shown";
import { useSettled } from "../../parts/useSettled";
import { workflowGraph } from "../../parts/workflowGraph";

interface Props {
  document: Doc;
  onDocument: (document: Doc) => void;
  /** The text cannot be parsed, so it cannot be saved. */
  unread: boolean;
  onUnread: (unread: boolean) => void;
}

export function WorkflowEditor({ document, onDocument, unread, onUnread }: Props) {
  const checked = useChecked(document);
  const picture = useMemo(() => workflowGraph(document), [document]);
  return (
    <div className="columns">
      <TextSide document={document} onDocument={onDocument} onUnread={onUnread} label="Workflow document" />
      <div className="stack">
        <Graph nodes={picture.nodes} edges={picture.edges} label="Workflow graph" />
        {checked.error ? <FailureNote failure={checked.error} /> : null}
        {checked.data?.warnings?.map((warning) => (
          <div key={warning} className="note tone-warn">
            {warning}
          </div>
        ))}
        {unread ? <p className="muted">Shows the last readable text.</p> : null}
        {checked.data && !checked.error && !unread ? (
          <p className="tone-ok" role="status">
            Valid
          </p>
        ) : null}
      </div>
    </div>
  );
}

function useChecked(document: Doc) {
  const namespace = useNamespace();
  const settled = useSettled(document);
  return useQuery<Schemas["WorkflowChecked"], Failure>({
    queryKey: [namespace, "workflow draft", settled],
    queryFn: async ({ signal }) =>
      (await ask("post", "/api/workflows/validate", { body: settled }, { namespace, signal })).answer,
    placeholderData: keepPreviousData,
    retry: (times, wrong) => !(wrong instanceof Refused) && times < 2,
  });
}
