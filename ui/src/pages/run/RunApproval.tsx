// The question that a run waits for, where the run is looked at.
import { Link } from "@tanstack/react-router";
import { Card } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import "../approvals/approvals.css";
import { Decide } from "../approvals/Decide";
import { Gates, Inputs, WhatItDoes } from "../approvals/Question";
import { yesText } from "../approvals/questions";
import { useApproval } from "../approvals/useApproval";

export function RunApproval({ approvalId }: { approvalId: string }) {
  const approval = useApproval(approvalId);
  return (
    <Card
      title={approval.data?.node_id ? `${approval.data.node_id} waits for a yes` : "It waits for a yes"}
      actions={
        <Link to="/approvals/$approvalId" params={{ approvalId }}>
          The whole question
        </Link>
      }
    >
      <Shown of={approval}>
        {(asked) => (
          <div className="stack">
            <div className="row">
              <Gates gates={asked.gates} />
              <span className="muted">
                {yesText(asked)} yes · expires <When at={asked.expires_at} brief none="never" />
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
