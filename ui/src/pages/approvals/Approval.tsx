// One approval request. Opening the page decides nothing; a decision is a separate request.
import { Link, useParams } from "@tanstack/react-router";
import { useRead } from "../../api/hooks";
import { useSession } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { Card, Page } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import "./approvals.css";
import { Decide } from "./Decide";
import { Inputs, QuestionFacts, Votes, WhatItDoes } from "./Question";
import { APPROVAL_LOOKS, askedText, mayDecide, titleOf, type Approval } from "./questions";
import { useApproval } from "./useApproval";

export default function ApprovalPage() {
  const { approvalId }: { approvalId: string } = useParams({ strict: false });
  const approval = useApproval(approvalId);
  return (
    <Page title={approval.data ? titleOf(approval.data) : "Approval"} above={<Link to="/approvals">← Approvals</Link>}>
      <Shown of={approval}>{(found) => <Whole approval={found} />}</Shown>
    </Page>
  );
}

function Whole({ approval }: { approval: Approval }) {
  // The run has the time zone.
  const run = useRead("/api/runs/{run_id}", { path: { run_id: approval.run_id } }, { live: false, staleSeconds: 60 });
  return (
    <>
      <div className="asked" role="status">
        <Badge look={APPROVAL_LOOKS[approval.status]} />
        <span dir="auto">{askedText(approval)}</span>
      </div>
      <div className="columns two">
        <div className="stack wide">
          <Card title={approval.question ? "Question" : "Action"}>
            <WhatItDoes approval={approval} />
          </Card>
          <Card title="Inputs">
            <Inputs approval={approval} />
          </Card>
        </div>
        <div className="stack wide">
          {approval.status === "pending" ? <DecisionCard approval={approval} /> : null}
          <Card title="Details">
            <QuestionFacts approval={approval} zone={run.data?.timezone} />
          </Card>
          <Card title="Votes">
            <Votes approval={approval} />
          </Card>
        </div>
      </div>
    </>
  );
}

/** Only for callers who may decide. */
function DecisionCard({ approval }: { approval: Approval }) {
  if (!mayDecide(useSession(), approval)) return null;
  return (
    <Card title="Decision">
      <Decide approval={approval} />
    </Card>
  );
}
