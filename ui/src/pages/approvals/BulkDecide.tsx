// Decide many approval requests with one reason.
import { useState } from "react";
import { ask, type Schemas } from "../../api/client";
import { useNamespace } from "../../api/session";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { JobProgress, useDialogJob } from "../../parts/JobProgress";
import type { NextPage } from "../../parts/jobs";
import { freshKey } from "../../parts/wishes";
import { actionText, inline, titleOf, type Approval } from "./questions";

interface Props {
  approvals: readonly Approval[];
  decision: Schemas["BulkDecision"];
  onClose: (started: boolean) => void;
}

const WORDS: Partial<Record<Schemas["DecisionOutcome"], string>> = {
  modified: "approved with changes",
  waiting: "awaiting more approvals",
};

export function BulkDecide({ approvals, decision, onClose }: Props) {
  // A copy: the list behind the dialog keeps changing.
  const [chosen] = useState(approvals);
  const [reason, setReason] = useState("");
  const [key] = useState(freshKey);
  const namespace = useNamespace();
  const { job, refusal, start } = useDialogJob();
  if (job) {
    return (
      <Dialog title={job.title} onClose={() => onClose(true)}>
        <JobProgress job={job} />
      </Dialog>
    );
  }
  const count = chosen.length === 1 ? "1 approval request" : `${chosen.length} approval requests`;
  const title = `${decision === "approve" ? "Approve" : "Reject"} ${count}`;
  const run = () => {
    const nextPage = decisionPage(namespace, chosen, decision, reason.trim(), key);
    start({ title, kind: "approval", namespace, total: chosen.length, nextPage });
  };
  return (
    <Dialog
      title={title}
      wide
      onClose={() => onClose(false)}
      failure={refusal}
      action={{ text: title, kind: decision === "approve" ? "primary" : "danger", run }}
    >
      <ul className="bulk-list">
        {chosen.map((each) => (
          <li key={each.approval_id}>
            <bdi>{titleOf(each)}</bdi>
            {each.gates.length > 0 ? <span className="muted"> ({each.gates.join(", ")})</span> : null}
            <div dir="auto">{actionText(each.action)}</div>
            <div className="small muted" dir="auto">
              {inline(each.inputs)}
            </div>
          </li>
        ))}
      </ul>
      <TextField
        label="Reason"
        placeholder="Optional"
        maxLength={1_000}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
    </Dialog>
  );
}

/** One page: the service accepts as many requests as can be selected. */
function decisionPage(
  namespace: string,
  chosen: readonly Approval[],
  decision: Schemas["BulkDecision"],
  reason: string,
  idempotencyKey: string,
): NextPage {
  const names = new Map(chosen.map((each) => [each.approval_id, titleOf(each)]));
  const body = {
    ids: [...names.keys()],
    input_hashes: Object.fromEntries(chosen.map((each) => [each.approval_id, each.input_hash])),
    decision,
    reason: reason || undefined,
  };
  return async () => {
    const { answer } = await ask("post", "/api/approvals/decisions", { body }, { namespace, idempotencyKey });
    const items = answer.outcomes.map(({ approval_id: id, outcome, message }) => ({
      id,
      name: names.get(id),
      outcome: WORDS[outcome] ?? outcome,
      failure: outcome === "failed" ? (message ?? "Not decided") : null,
    }));
    return { items, isLast: true };
  };
}
