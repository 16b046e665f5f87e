// The steps of a workflow's run: its graph with how far each node is, and the same as rows.
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Card } from "../../parts/Page";
import { Graph, type NodeState } from "../../parts/Graph";
import { Loading } from "../../parts/Shown";
import { When } from "../../parts/When";
import { workflowGraph } from "../../parts/workflowGraph";
import { durationText } from "../../time/zones";
import { causeText } from "./sentence";

type Step = Schemas["RunStep"];

const LISTED = 200;

export function Steps({ run, steps }: { run: Schemas["Run"]; steps: readonly Step[] }) {
  return (
    <Card title="Steps" actions={<Progress steps={steps} />}>
      <div className="stack">
        {run.workflow ? <Drawn workflow={run.workflow} steps={steps} /> : null}
        {steps.length === 0 ? <p className="muted">No step has begun yet.</p> : <StepTable steps={steps} />}
      </div>
    </Card>
  );
}

function Progress({ steps }: { steps: readonly Step[] }) {
  const ended = steps.filter((step) => step.finished_at !== null).length;
  if (steps.length === 0) return null;
  return (
    <span className="muted">
      {ended} of {steps.length} begun {steps.length === 1 ? "one" : "ones"} ended
    </span>
  );
}

function Drawn({ workflow, steps }: { workflow: Schemas["RunWorkflow"]; steps: readonly Step[] }) {
  const navigate = useNavigate();
  const { workflow_id, version } = workflow;
  // A version never changes.
  const read = useRead(
    "/api/workflows/{workflow_id}",
    { path: { workflow_id }, query: { version: String(version) } },
    { live: false, staleSeconds: 3_600 },
  );
  const picture = useMemo(() => workflowGraph(read.data?.document), [read.data?.document]);
  const runs = useMemo(() => new Map(steps.map((step) => [step.node_id, step])), [steps]);
  const states = useMemo(
    () => new Map([...runs].map(([node, step]): [string, NodeState] => [node, stateOf(step)])),
    [runs],
  );
  if (read.isPending) return <Loading text="Loading the graph…" />;
  if (read.data === undefined) return <p className="muted">The graph cannot be shown: {read.error.message}</p>;
  const open = (node: string) => {
    const step = runs.get(node);
    if (step !== undefined) void navigate({ to: "/runs/$runId", params: { runId: step.run_id } });
  };
  return (
    <Graph
      nodes={picture.nodes}
      edges={picture.edges}
      states={states}
      onNode={open}
      label={`Graph of ${workflow_id}, version ${version}`}
    />
  );
}

/** Of a step that was given to somebody else after it failed, the later one counts. */
function stateOf(step: Step): NodeState {
  const look = RUN_LOOKS[step.state];
  const again = step.attempt > 0 ? `attempt ${step.attempt + 1}` : null;
  return {
    look,
    note: [step.fallback ? "fallback" : null, causeText(step.cause), again].filter(Boolean).join(", ") || null,
  };
}

function StepTable({ steps }: { steps: readonly Step[] }) {
  return (
    <>
      <div className="table-frame bare" tabIndex={0} role="region" aria-label="Steps as rows">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">State</th>
              <th scope="col">Started</th>
              <th scope="col" className="number">
                Took
              </th>
              <th scope="col" className="number">
                Attempt
              </th>
              <th scope="col">Assignee</th>
              <th scope="col">Approval</th>
            </tr>
          </thead>
          <tbody>
            {steps.slice(0, LISTED).map((step) => (
              <StepRow key={step.run_id} step={step} />
            ))}
          </tbody>
        </table>
      </div>
      {steps.length > LISTED ? (
        <p className="muted">
          The first {LISTED} of {steps.length} steps; the graph has all of them.
        </p>
      ) : null}
    </>
  );
}

function StepRow({ step }: { step: Step }) {
  const why = causeText(step.cause) ?? step.error?.trim().split("\n").pop() ?? null;
  return (
    <tr data-row>
      <td>
        <Link to="/runs/$runId" params={{ runId: step.run_id }}>
          <bdi>{step.node_id}</bdi>
        </Link>
        {step.workflow ? <div className="small muted">workflow {step.workflow.workflow_id}</div> : null}
        {step.fallback ? <div className="small muted">in place of one that failed</div> : null}
      </td>
      <td>
        <Badge look={RUN_LOOKS[step.state]} />
        {why ? (
          <div className="small muted why" title={why} dir="auto">
            {why}
          </div>
        ) : null}
      </td>
      <td>
        <When at={step.started_at} brief none="not yet" />
      </td>
      <td className="number nowrap">{tookText(step)}</td>
      <td className="number">{step.attempt + 1}</td>
      <td>{step.assignee ? <bdi>{step.assignee.member ?? step.assignee.id}</bdi> : "—"}</td>
      <td>
        {step.approval?.approval_id ? (
          <Link to="/approvals/$approvalId" params={{ approvalId: step.approval.approval_id }}>
            {step.approval.status ?? "asked"}
          </Link>
        ) : (
          "—"
        )}
      </td>
    </tr>
  );
}

function tookText(step: Step): string {
  if (!step.started_at || !step.finished_at) return "—";
  return durationText(Math.max(0, (Date.parse(step.finished_at) - Date.parse(step.started_at)) / 1000));
}
