// The steps of a workflow run as a graph and as a table.
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Card } from "../../parts/Page";
import { Graph, type NodeState } from "../../parts/Graph";
import { Loading } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { workflowGraph, type WorkflowPicture } from "../../parts/workflowGraph";
import { durationText } from "../../time/zones";
import { attemptOf, workerText } from "../runs/rows";
import { causeText, APPROVAL_STATES, inSentence } from "../../words";

type Step = Schemas["RunStep"];

const LISTED = 200;

export function Steps({ run, steps }: { run: Schemas["Run"]; steps: readonly Step[] }) {
  const read = useVersion(run.workflow);
  const picture = useMemo(() => workflowGraph(read.data?.document), [read.data?.document]);
  const runs = useMemo(() => new Map(steps.map((step) => [step.node_id, step])), [steps]);
  const nodes = read.data === undefined ? null : picture.nodes.length;
  return (
    <Card title="Steps" actions={<Progress runs={runs} nodes={nodes} />}>
      <div className="stack">
        {run.workflow === null ? null : read.data ? (
          <Drawn workflow={run.workflow} picture={picture} runs={runs} />
        ) : read.error ? (
          <p className="muted">Cannot show the graph: {read.error.message}</p>
        ) : (
          <Loading text="Loading graph…" />
        )}
        {steps.length === 0 ? <p className="muted">No steps started yet</p> : <StepTable steps={steps} />}
      </div>
    </Card>
  );
}

/** A version never changes. */
function useVersion(workflow: Schemas["RunWorkflow"] | null) {
  const { workflow_id, version } = workflow ?? { workflow_id: "", version: 0 };
  return useRead(
    "/api/workflows/{workflow_id}",
    { path: { workflow_id }, query: { version: String(version) } },
    { live: false, staleSeconds: 3_600, enabled: workflow !== null },
  );
}

/** Count the ended steps of all nodes, or of the started steps if the workflow is not loaded. */
function Progress({ runs, nodes }: { runs: ReadonlyMap<string, Step>; nodes: number | null }) {
  const ended = [...runs.values()].filter((step) => step.finished_at !== null).length;
  if (nodes)
    return (
      <span className="row tight muted">
        {ended < nodes ? (
          <progress className="step-progress" max={nodes} value={ended} aria-label="Ended steps" />
        ) : null}
        {ended} of {nodes} ended
      </span>
    );
  return runs.size === 0 ? null : (
    <span className="muted">
      {ended} of {runs.size} started steps ended
    </span>
  );
}

interface DrawnProps {
  workflow: Schemas["RunWorkflow"];
  picture: WorkflowPicture;
  runs: ReadonlyMap<string, Step>;
}

function Drawn({ workflow, picture, runs }: DrawnProps) {
  const navigate = useNavigate();
  const states = useMemo(
    () => new Map([...runs].map(([node, step]): [string, NodeState] => [node, stateOf(step)])),
    [runs],
  );
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
      label={`Graph of ${workflow.workflow_id}, version ${workflow.version}`}
    />
  );
}

/** The state of a node; after a fallback that of the later run. */
function stateOf(step: Step): NodeState {
  const look = RUN_LOOKS[step.state];
  const attempt = attemptOf(step);
  const why = causeText(step.cause);
  const again = attempt > 1 ? `attempt ${attempt}` : null;
  return {
    look,
    note:
      [step.fallback ? "fallback" : null, why === null ? null : inSentence(why), again].filter(Boolean).join(", ") ||
      null,
  };
}

function StepTable({ steps }: { steps: readonly Step[] }) {
  return (
    <>
      <Table
        region="Steps"
        frame={{ className: "table-frame bare" }}
        heads={[
          "Step",
          "State",
          "Started",
          { text: "Duration", number: true },
          { text: "Attempt", number: true },
          "Assignee",
          "Approval",
        ]}
      >
        {steps.slice(0, LISTED).map((step) => (
          <StepRow key={step.run_id} step={step} />
        ))}
      </Table>
      {steps.length > LISTED ? (
        <p className="muted">
          First {LISTED} of {steps.length} steps. The graph shows all steps.
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
        {step.workflow ? (
          <div className="small muted">Workflow {step.workflow.name || step.workflow.workflow_id}</div>
        ) : null}
        {step.fallback ? <div className="small muted">Fallback</div> : null}
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
        <When at={step.started_at} brief none="Not yet" />
      </td>
      <td className="number nowrap">{tookText(step)}</td>
      <td className="number">{attemptOf(step)}</td>
      <td>{step.assignee ? <bdi>{workerText(step.assignee)}</bdi> : "—"}</td>
      <td>
        {step.approval?.approval_id ? (
          <Link to="/approvals/$approvalId" params={{ approvalId: step.approval.approval_id }}>
            {APPROVAL_STATES[step.approval.status ?? "pending"]}
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
