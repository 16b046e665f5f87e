// The details of a run: times, relations, policies, inputs and result.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { isolated } from "../../parts/isolated";
import { Card, Facts, SecondaryId } from "../../parts/Page";
import { Json } from "../../parts/Json";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { durationText } from "../../time/zones";
import { originText } from "../runs/filters";
import { attemptOf, latenessOf, usageTexts } from "../runs/rows";
import { policyFacts, type PolicyFact } from "./policies";
import { ALL_DEFAULTS, counted } from "../../words";
import { kindText, sourceText } from "../../words/run";

type Run = Schemas["Run"];
type Fact = readonly [name: string, value: ReactNode];

export function RunFacts({ run }: { run: Run }) {
  return (
    <Card title="Details">
      <Facts of={[...times(run), ...belongings(run), ...kin(run)]} />
    </Card>
  );
}

function times(run: Run): Fact[] {
  const zone = run.timezone;
  const late = latenessOf(run);
  const facts: Fact[] = [["Scheduled for", <When at={run.nominal} zone={zone} />]];
  if (run.due !== run.nominal) facts.push(["Due", <When at={run.due} zone={zone} />]);
  if (run.covers) facts.push(["Covers", <Covered covers={run.covers} zone={zone} />]);
  facts.push(["Started", <When at={run.started_at} zone={zone} none="Not yet" />]);
  if (late !== null) facts.push(["Delay", durationText(late)]);
  if (run.finished_at) facts.push(["Ended", <When at={run.finished_at} zone={zone} />]);
  if (run.started_at)
    facts.push([
      "Duration",
      run.duration_seconds === null
        ? `${durationText(run.usage.runtime_seconds)} so far`
        : durationText(run.duration_seconds),
    ]);
  if (run.deadline && !run.finished_at) facts.push(["Deadline", <When at={run.deadline} zone={zone} />]);
  if (run.stop_requested_at) facts.push(["Stop requested", <When at={run.stop_requested_at} zone={zone} />]);
  return facts;
}

function Covered({ covers, zone }: { covers: Schemas["Covered"]; zone?: string | null }) {
  return (
    <>
      {counted(covers.count, "missed occurrence")}, from <When at={covers.first} zone={zone} absolute /> to{" "}
      <When at={covers.last} zone={zone} absolute />
    </>
  );
}

function belongings(run: Run): Fact[] {
  const facts: Fact[] = [
    ["Origin", originText(run.origin)],
    ["Attempt", String(attemptOf(run))],
  ];
  if (run.schedule_id) {
    facts.push([
      "Schedule",
      <>
        <Link to="/schedules/$scheduleId" params={{ scheduleId: run.schedule_id }}>
          <bdi>{run.schedule_name || run.schedule_id}</bdi>
        </Link>
        <SecondaryId name={run.schedule_name} id={run.schedule_id} />
        {run.revision === null ? null : <span className="muted"> revision {run.revision}</span>}
      </>,
    ]);
  }
  if (run.workflow) {
    const { workflow_id, version, name } = run.workflow;
    facts.push([
      "Workflow",
      <>
        <Link to="/workflows/$workflowId" params={{ workflowId: workflow_id }} search={{ version } as never}>
          <bdi>{name || workflow_id}</bdi>
        </Link>
        <SecondaryId name={name} id={workflow_id} />
        <span className="muted"> version {version}</span>
      </>,
    ]);
  } else if (run.workflow_type) facts.push(["Workflow type", <bdi>{run.workflow_type}</bdi>]);
  if (run.kind) facts.push(["Action type", kindText(run.kind)]);
  if (run.assignee) facts.push(["Assignee", <Assignee of={run.assignee} />]);
  if (run.task_queue) facts.push(["Queue", <bdi>{run.task_queue}</bdi>]);
  if (run.user_id) facts.push(["Owner", <bdi>{run.user_id}</bdi>]);
  const used = usageTexts(run.usage);
  if (used.length > 0) facts.push(["Usage", used.join(" · ")]);
  return facts;
}

function Assignee({ of }: { of: Schemas["RunAssignee"] }) {
  return (
    <>
      {of.type === "team" ? (
        <Link to="/teams/$teamId" params={{ teamId: of.id }}>
          <bdi>{of.name || of.id}</bdi>
        </Link>
      ) : (
        <Link to="/agents/$agentId" params={{ agentId: of.id }}>
          <bdi>{of.name || of.id}</bdi>
        </Link>
      )}
      <SecondaryId name={of.name} id={of.id} />
      <span className="muted"> {of.member ? `${of.type}, by ${of.member_name || of.member}` : of.type}</span>
    </>
  );
}

function kin(run: Run): Fact[] {
  const facts: Fact[] = [];
  if (run.rerun_of) facts.push(["Rerun of", <RunLink id={run.rerun_of} />]);
  if (run.reruns && run.reruns.length > 0) {
    facts.push([
      run.reruns.length === 1 ? "Rerun as" : "Reruns",
      <span className="row tight">
        {run.reruns.slice(0, 20).map((id) => (
          <RunLink key={id} id={id} />
        ))}
      </span>,
    ]);
  }
  facts.push(["Run ID", <code className="small">{run.run_id}</code>]);
  if (run.key)
    facts.push([
      "Idempotency key",
      <code className="small" title="Sent to the target. All attempts of the run have the same key.">
        {run.key}
      </code>,
    ]);
  const labels = Object.entries(run.labels);
  if (labels.length > 0)
    facts.push([
      "Labels",
      labels
        .slice(0, 50)
        .map(([name, value]) => isolated(`${name}=${value}`))
        .join(", "),
    ]);
  return facts;
}

export function RunLink({ id }: { id: string }) {
  return (
    <Link to="/runs/$runId" params={{ runId: id }}>
      <code className="small">{id}</code>
    </Link>
  );
}

/** Show the configured policies first and the defaults collapsed. */
export function RunPolicies({ run }: { run: Run }) {
  const facts = run.policies ? policyFacts(run.policies) : [];
  const usual = facts.filter((fact) => fact.origin === "default");
  const configured = facts.filter((fact) => fact.origin !== "default");
  if (facts.length === 0) return null;
  return (
    <Card title="Policies">
      <div className="stack">
        {configured.length > 0 ? <PolicyTable facts={configured} /> : <p className="muted">{ALL_DEFAULTS}</p>}
        {usual.length > 0 ? (
          <details>
            <summary>{counted(usual.length, "default")}</summary>
            <PolicyTable facts={usual} />
          </details>
        ) : null}
      </div>
    </Card>
  );
}

function PolicyTable({ facts }: { facts: readonly PolicyFact[] }) {
  return (
    <Table frame={{ className: "table-frame bare" }} className="table tight" heads={["Policy", "Value", "Source"]}>
      {facts.map((fact) => (
        <tr key={fact.name}>
          <th scope="row">{fact.name}</th>
          <td dir="auto">{fact.value}</td>
          <td className="muted nowrap">{sourceText(fact.origin)}</td>
        </tr>
      ))}
    </Table>
  );
}

const UNREADABLE = "None or unreadable";

export function RunValues({ run }: { run: Run }) {
  const more: [string, object][] = [
    ["Rendered templates", run.rendered ?? {}],
    ["Memo", run.memo],
    ["Search attributes", run.search_attributes],
  ];
  return (
    <div className="columns">
      <div className="stack">
        <h2>Inputs</h2>
        {run.inputs === null ? (
          <p className="muted">{run.broken ? UNREADABLE : "No inputs"}</p>
        ) : (
          <Json value={run.inputs} label="Inputs" />
        )}
      </div>
      <div className="stack">
        <h2>Result</h2>
        {run.result === null ? (
          <p className="muted">{run.broken ? UNREADABLE : run.finished_at ? "No result" : "No result yet"}</p>
        ) : (
          <Json value={run.result} label="Result" />
        )}
      </div>
      {more
        .filter(([, value]) => Object.keys(value).length > 0)
        .map(([title, value]) => (
          <div key={title} className="stack">
            <h2>{title}</h2>
            <Json value={value} label={title} />
          </div>
        ))}
    </div>
  );
}
