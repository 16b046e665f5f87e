// One workflow: graph, latest runs, schedules, versions; actions to run, edit and delete it.
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useTagged, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import type { Doc } from "../../document/document";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { DeleteDialog } from "../../parts/DeleteDialog";
import { Dialog } from "../../parts/Dialog";
import { Graph } from "../../parts/Graph";
import { Json } from "../../parts/Json";
import { JsonField } from "../../parts/JsonField";
import { parseJson } from "../../parts/jsonInput";
import { Card, Page } from "../../parts/Page";
import { ScheduleList } from "../../parts/ScheduleList";
import { Shown } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { workflowGraph } from "../../parts/workflowGraph";
import { durationText } from "../../time/zones";
import { NO_RUNS } from "../../words";
import { Versions } from "./Versions";
import { WorkflowEditor } from "./WorkflowEditor";

type Asking = "start" | "change" | "delete" | null;

export default function Workflow() {
  const { workflowId }: { workflowId: string } = useParams({ strict: false });
  const { version: asked }: { version?: unknown } = useSearch({ strict: false });
  const version = Number.isInteger(asked) && Number(asked) > 0 ? Number(asked) : undefined;
  const found = useTagged("/api/workflows/{workflow_id}", {
    path: { workflow_id: workflowId },
    query: version === undefined ? {} : { version: String(version) },
  });
  const around = (note: ReactNode) => (
    <Page title={workflowId} above={<Link to="/workflows">← Workflows</Link>}>
      {note}
    </Page>
  );
  return (
    <Shown of={found} around={around}>
      {({ answer, etag }) => <Loaded workflow={answer} etag={etag} isOld={version !== undefined} />}
    </Shown>
  );
}

function Loaded({ workflow, etag, isOld }: { workflow: Schemas["Workflow"]; etag: string | null; isOld: boolean }) {
  const writes = useMay("write");
  const [asking, setAsking] = useState<Asking>(null);
  const [node, setNode] = useState<string | null>(null);
  const picture = useMemo(() => workflowGraph(workflow.document), [workflow.document]);
  const id = workflow.workflow_id;
  return (
    <Page
      title={workflow.name || id}
      above={<Link to="/workflows">← Workflows</Link>}
      about={
        <>
          <code>{id}</code> · version {workflow.version} · <When at={workflow.created_at} />
          {workflow.created_by ? (
            <>
              {" "}
              by <bdi>{workflow.created_by}</bdi>
            </>
          ) : null}
        </>
      }
      actions={
        writes ? (
          <>
            <Button onClick={() => setAsking("change")}>Edit</Button>
            <Button kind="danger" onClick={() => setAsking("delete")}>
              Delete
            </Button>
            <Button kind="primary" onClick={() => setAsking("start")}>
              Run
            </Button>
          </>
        ) : null
      }
    >
      {isOld ? (
        <div className="note tone-info">
          This is version {workflow.version}.{" "}
          <Link to="/workflows/$workflowId" params={{ workflowId: id }}>
            Show latest version
          </Link>
        </div>
      ) : null}
      {workflow.graph === null ? (
        <div className="note tone-bad">
          The stored document of this version is unreadable. Editing the workflow creates a new version.
        </div>
      ) : null}
      <Card title="Graph">
        <Graph nodes={picture.nodes} edges={picture.edges} chosen={node} onNode={setNode} label={`Graph of ${id}`} />
        {node ? <NodeDetails document={workflow.document} id={node} /> : null}
      </Card>
      <div className="columns">
        <LatestRuns workflowId={id} />
        <StartedBy workflowId={id} document={workflow.document} />
      </div>
      <Versions workflowId={id} current={workflow.version} />
      {asking === "start" ? <Start workflow={workflow} onClose={() => setAsking(null)} /> : null}
      {asking === "change" ? (
        <Change workflow={workflow} etag={isOld ? null : etag} onClose={() => setAsking(null)} />
      ) : null}
      {asking === "delete" ? <Delete workflowId={id} onClose={() => setAsking(null)} /> : null}
    </Page>
  );
}

function NodeDetails({ document, id }: { document: Record<string, unknown>; id: string }) {
  const nodes = Array.isArray(document["nodes"]) ? (document["nodes"] as Record<string, unknown>[]) : [];
  const node = nodes.find((each) => each["id"] === id);
  if (node === undefined) return null;
  return (
    <section className="stack" aria-label={`Node ${id}`}>
      <h3>
        <bdi>{id}</bdi>
      </h3>
      <Json value={node} label={`Node ${id}`} />
    </section>
  );
}

function LatestRuns({ workflowId }: { workflowId: string }) {
  const runs = useRead("/api/runs", { query: { workflow: workflowId, page_size: 10 } });
  return (
    <Card
      title="Latest runs"
      actions={
        <Link to="/runs" search={{ workflow: workflowId } as never}>
          View all runs
        </Link>
      }
    >
      <Shown of={runs}>
        {(answer) =>
          answer.runs.length === 0 ? (
            <p className="muted">{NO_RUNS}</p>
          ) : (
            <ul className="plain stack">
              {answer.runs.map((run) => (
                <li key={run.run_id} className="row" data-row>
                  <Badge look={RUN_LOOKS[run.state]} />
                  {run.run_id ? (
                    <Link to="/runs/$runId" params={{ runId: run.run_id }}>
                      <When at={run.nominal ?? run.created_at} />
                    </Link>
                  ) : null}
                  {run.duration_seconds != null ? (
                    <span className="muted small">{durationText(run.duration_seconds)}</span>
                  ) : null}
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  );
}

function StartedBy({ workflowId, document }: { workflowId: string; document: Record<string, unknown> }) {
  const writes = useMay("write");
  const triggers = Array.isArray(document["triggers"]) ? document["triggers"].length : 0;
  return (
    <Card title="Schedules">
      <div className="stack">
        <ScheduleList
          query={{ workflow_id: workflowId }}
          empty={
            <>
              No schedules.{" "}
              {writes ? (
                <Link to="/schedules/new" search={{ template: "workflow" } as never}>
                  Create schedule
                </Link>
              ) : null}
            </>
          }
        />
        {triggers > 0 ? (
          <p className="small muted">
            {triggers === 1 ? "1 schedule is a trigger" : `${triggers} schedules are triggers`} defined in the workflow
            document. To change a trigger, edit the workflow.
          </p>
        ) : null}
      </div>
    </Card>
  );
}

function Start({ workflow, onClose }: { workflow: Schemas["Workflow"]; onClose: () => void }) {
  const start = useWrite("post", "/api/workflows/{workflow_id}/runs");
  const navigate = useNavigate();
  const [inputs, setInputs] = useState("{}");
  const read = parseJson(inputs);
  const run = () =>
    start.mutate(
      {
        path: { workflow_id: workflow.workflow_id },
        body: { inputs: read.ok ? read.value : {}, version: workflow.version },
      },
      {
        onSuccess: (started) => {
          onClose(); // A second click while the run page loads would start another run.
          void navigate({ to: "/runs/$runId", params: { runId: started.run_id } });
        },
      },
    );
  return (
    <Dialog
      title={`Run ${workflow.workflow_id}`}
      onClose={onClose}
      failure={start.error}
      action={{ text: "Run", run, busy: start.isPending, disabled: !read.ok }}
    >
      <p>Starts one run of version {workflow.version} now.</p>
      <JsonField label="Inputs" rows={6} text={inputs} onText={setInputs} />
    </Dialog>
  );
}

function Change({
  workflow,
  etag,
  onClose,
}: {
  workflow: Schemas["Workflow"];
  etag: string | null;
  onClose: () => void;
}) {
  const put = useWrite("put", "/api/workflows/{workflow_id}");
  const navigate = useNavigate();
  const say = useSay();
  const [document, setDocument] = useState(workflow.document as Doc);
  const [unread, setUnread] = useState(false);
  const [begun] = useState(etag); // Does not overwrite a version saved by another user.
  const run = () =>
    put.mutate(
      { path: { workflow_id: workflow.workflow_id }, body: document, extra: { ifMatch: begun ?? undefined } },
      {
        onSuccess: (written) => {
          say(`${workflow.workflow_id} saved as version ${written.version}`);
          onClose();
          void navigate({ to: "/workflows/$workflowId", params: { workflowId: workflow.workflow_id } });
        },
      },
    );
  return (
    <Dialog
      title={`Edit ${workflow.workflow_id}`}
      wide
      onClose={onClose}
      failure={put.error}
      action={{ text: "Save new version", run, busy: put.isPending, disabled: unread }}
    >
      <WorkflowEditor document={document} onDocument={setDocument} unread={unread} onUnread={setUnread} />
    </Dialog>
  );
}

function Delete({ workflowId, onClose }: { workflowId: string; onClose: () => void }) {
  const remove = useWrite("delete", "/api/workflows/{workflow_id}");
  const navigate = useNavigate();
  return (
    <DeleteDialog
      name={workflowId}
      remove={remove}
      given={{ path: { workflow_id: workflowId } }}
      onGone={() => void navigate({ to: "/workflows" })}
      onClose={onClose}
    >
      <p>Deletes all versions. Active runs continue, and their records stay.</p>
    </DeleteDialog>
  );
}
