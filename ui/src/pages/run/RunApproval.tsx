// A pending approval request on the page of its run.
import { Link } from "@tanstack/react-router";
import { Card } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import "../approvals/approvals.css";
import { Decide } from "../approvals/Decide";
import { Gates, Inputs, WhatItDoes } from "../approvals/Question";
import { yesText } from "../approvals/questions";
import { useApproval } from "../approvals/useApproval";
import { RUN_STATES } from "../../words";

export function RunApproval({ approvalId }: { approvalId: string }) {
  const approval = useApproval(approvalId);
  return (
    <Card
      title={approval.data?.node_id ? `${approval.data.node_id}: awaiting approval` : RUN_STATES.awaiting_approval}
      actions={
        <Link to="/approvals/$approvalId" params={{ approvalId }}>
          View approval
        </Link>
      }
    >
      <Shown of={approval}>
        {(asked) => (
          <div className="stack">
            <div className="row">
              <Gates gates={asked.gates} />
              <span className="muted">
                Approvals: {yesText(asked)} · Expires: <When at={asked.expires_at} brief none="Never" />
              </span>
            </div>
            <WhatItDoes approval={asked} />
            {asked.inputs === null ? null : <Inputs approval={asked} />}
            <Decide approval={asked} />
          </div>
        )}
      </Shown>
    </Card>
  );
}
