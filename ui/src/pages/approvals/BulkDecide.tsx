// Decides many questions with one reason, and shows what became of each.
import { useState } from "react";
import { useWrite } from "../../api/hooks";
import type { Schemas } from "../../api/client";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { actionText, inline, titleOf, type Approval } from "./questions";

interface Props {
  approvals: readonly Approval[];
  decision: Schemas["BulkDecision"];
  onClose: (done: boolean) => void;
}

const WORDS: Readonly<Record<Schemas["DecisionOutcome"], string>> = {
  approved: "approved",
  modified: "approved with changes",
  rejected: "rejected",
  waiting: "counted; more yeses are needed",
  failed: "not decided",
};

export function BulkDecide({ approvals, decision, onClose }: Props) {
  // What was chosen when the dialog was opened: the list below it goes on living.
  const [chosen] = useState(approvals);
  const [reason, setReason] = useState("");
  const write = useWrite("post", "/api/approvals/decisions");
  const verb = decision === "approve" ? "Approve" : "Reject";
  const what = chosen.length === 1 ? "one question" : `${chosen.length} questions`;
  const send = () =>
    write.mutate({
      body: {
        ids: chosen.map((each) => each.approval_id),
        input_hashes: Object.fromEntries(chosen.map((each) => [each.approval_id, each.input_hash])),
        decision,
        reason: reason.trim() || undefined,
      } as never,
    });
  return (
    <Dialog
      title={`${verb} ${what}`}
      wide
      onClose={() => onClose(write.data !== undefined)}
      closeText={write.data ? "Close" : "Cancel"}
      failure={write.error}
      action={
        write.data
          ? undefined
          : {
              text: `${verb} ${what}`,
              kind: decision === "approve" ? "primary" : "danger",
              busy: write.isPending,
              run: send,
            }
      }
    >
      {write.data ? (
        <Outcomes of={write.data.outcomes} asked={chosen} />
      ) : (
        <>
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
            placeholder="for the record; optional"
            maxLength={1_000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </>
      )}
    </Dialog>
  );
}

function Outcomes({ of, asked }: { of: readonly Schemas["DecidedOne"][]; asked: readonly Approval[] }) {
  const titles = new Map(asked.map((each) => [each.approval_id, titleOf(each)]));
  return (
    <ul className="bulk-list" role="status">
      {of.map((each) => (
        <li key={each.approval_id}>
          <bdi>{titles.get(each.approval_id) ?? each.approval_id}</bdi>:{" "}
          <span className={each.outcome === "failed" ? "tone-bad" : "tone-ok"}>{WORDS[each.outcome]}</span>
          {each.message ? <div className="small muted">{each.message}</div> : null}
        </li>
      ))}
    </ul>
  );
}
