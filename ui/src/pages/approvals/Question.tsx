// The content of an approval request: its action, inputs, details and votes.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { isolated } from "../../parts/isolated";
import { Facts, SecondaryId } from "../../parts/Page";
import { Json, JsonDiff } from "../../parts/Json";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { APPROVAL_STATES } from "../../words";
import { actionText, yesText, type Approval } from "./questions";

// Long enough for the approver to read a whole prompt.
const MOST_SAID = 2_000;

export function WhatItDoes({ approval }: { approval: Approval }) {
  return (
    <div className="stack">
      {approval.question ? (
        <blockquote className="question" dir="auto">
          {approval.question}
        </blockquote>
      ) : null}
      {approval.action ? (
        <>
          <p dir="auto">{actionText(approval.action, MOST_SAID)}</p>
          {approval.agent ? <AgentFacts agent={approval.agent} /> : null}
          <details>
            <summary>Action as JSON</summary>
            <Json value={approval.action} label="Action" />
          </details>
        </>
      ) : null}
    </div>
  );
}

/** The agent that receives the prompt, and its URL. */
function AgentFacts({ agent }: { agent: NonNullable<Approval["agent"]> }) {
  return (
    <Facts
      of={[
        [
          "Agent",
          <>
            <Link to="/agents/$agentId" params={{ agentId: agent.agent_id }}>
              <bdi>{agent.name || agent.agent_id}</bdi>
            </Link>
            <SecondaryId name={agent.name} id={agent.agent_id} />
          </>,
        ],
        ["URL", agent.url ? <bdi className="mono">{agent.url}</bdi> : "None"],
      ]}
    />
  );
}

/** The inputs; if an approver changed them, the difference. */
export function Inputs({ approval }: { approval: Approval }) {
  if (approval.proposed_inputs !== null && approval.proposed_inputs !== undefined) {
    return (
      <div className="stack">
        <p className="muted">Changed by the approver: − proposed, + approved</p>
        <JsonDiff before={approval.proposed_inputs} after={approval.inputs} label="Proposed and approved inputs" />
      </div>
    );
  }
  if (approval.inputs === null) return <p className="muted">No inputs</p>;
  return <Json value={approval.inputs} label="Inputs" />;
}

/** `zone` is the time zone of the schedule. */
export function QuestionFacts({ approval, zone }: { approval: Approval; zone?: string | null }) {
  const facts: (readonly [string, ReactNode])[] = [];
  if (approval.broken) facts.push(["Unreadable", <span className="tone-bad">{approval.broken}</span>]);
  if (approval.gates.length > 0) facts.push(["Gates", <Gates gates={approval.gates} />]);
  facts.push(["Approvals", yesText(approval)]);
  facts.push([
    "Approvers",
    approval.broken ? (
      "None: the request is unreadable. Cancel its run instead."
    ) : approval.approvers.length === 0 ? (
      "Users with the approve permission"
    ) : (
      <bdi>{approval.approvers.map(isolated).join(", ")}</bdi>
    ),
  ]);
  facts.push(["Requested", <When at={approval.requested_at} zone={zone} />]);
  if (approval.status === "pending")
    facts.push(["Expires", <When at={approval.expires_at} zone={zone} none="Never" />]);
  if (approval.decided_at) facts.push(["Decided", <When at={approval.decided_at} zone={zone} />]);
  if (approval.decided_by) facts.push(["Decided by", <bdi>{approval.decided_by}</bdi>]);
  if (approval.reason) facts.push(["Reason", <span dir="auto">{approval.reason}</span>]);
  if (approval.reply) facts.push(["Reply", <span dir="auto">{approval.reply}</span>]);
  if (approval.standing_id) facts.push(["Rule", "Standing approval"]);
  facts.push(["Scheduled for", <When at={approval.nominal} zone={zone} />]);
  facts.push(["Run", <RunLinks approval={approval} />]);
  if (approval.schedule_id)
    facts.push(["Schedule", <ScheduleLink id={approval.schedule_id} name={approval.schedule_name} />]);
  if (approval.workflow_id)
    facts.push(
      isStored(approval)
        ? ["Workflow", <WorkflowLink id={approval.workflow_id} name={approval.workflow_name} />]
        : typeFact(approval),
    );
  return <Facts of={facts} />;
}

/** A workflow type that only workers know has no page. */
function isStored(approval: Approval): boolean {
  return approval.node_id !== null || approval.action?.["workflow_id"] !== undefined;
}

function typeFact(approval: Approval): readonly [string, ReactNode] {
  return ["Type", <bdi>{approval.workflow_id}</bdi>];
}

export function Gates({ gates }: { gates: readonly string[] }) {
  return (
    <span className="row tight">
      {gates.map((gate) => (
        <bdi key={gate} className="badge tone-accent">
          {gate}
        </bdi>
      ))}
    </span>
  );
}

function RunLinks({ approval }: { approval: Approval }) {
  return (
    <span className="row">
      <Link to="/runs/$runId" params={{ runId: approval.run_id }}>
        {approval.node_id === null ? "View run" : "View step"}
      </Link>
      {approval.root_run_id === approval.run_id ? null : (
        <Link to="/runs/$runId" params={{ runId: approval.root_run_id }}>
          View workflow run
        </Link>
      )}
    </span>
  );
}

interface NamedLink {
  id: string;
  name?: string | null;
}

function ScheduleLink({ id, name }: NamedLink) {
  return (
    <>
      <Link to="/schedules/$scheduleId" params={{ scheduleId: id }}>
        <bdi>{name || id}</bdi>
      </Link>
      <SecondaryId name={name} id={id} />
    </>
  );
}

function WorkflowLink({ id, name }: NamedLink) {
  return (
    <>
      <Link to="/workflows/$workflowId" params={{ workflowId: id }}>
        <bdi>{name || id}</bdi>
      </Link>
      <SecondaryId name={name} id={id} />
    </>
  );
}

const VOTES = { approve: "Approved", reject: "Rejected", modify: APPROVAL_STATES.modified } as const;

export function Votes({ approval }: { approval: Approval }) {
  if (approval.votes.length === 0) return <p className="muted">No votes</p>;
  return (
    <Table
      frame={{ className: "table-frame bare" }}
      className="table tight"
      heads={["Approver", "Vote", "Time", "Reason"]}
    >
      {approval.votes.map((vote) => (
        <tr key={`${vote.by} ${vote.at}`}>
          <th scope="row">
            <bdi>{vote.by}</bdi>
          </th>
          <td>{VOTES[vote.decision]}</td>
          <td>
            <When at={vote.at} />
          </td>
          <td dir="auto">{vote.reason ?? "—"}</td>
        </tr>
      ))}
    </Table>
  );
}
