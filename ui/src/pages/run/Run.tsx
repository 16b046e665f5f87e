// One run: its state, steps, details, policies, inputs, result, events, log and attempts.
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Page } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { Tabs } from "../../parts/Tabs";
import { titleOf } from "../runs/rows";
import { Attempts } from "./Attempts";
import { Events } from "./Events";
import { Log } from "./Log";
import "./run.css";
import { RunActions } from "./RunActions";
import { RunApproval } from "./RunApproval";
import { RunFacts, RunPolicies, RunValues } from "./RunFacts";
import { hasEnded, sentence } from "./sentence";
import { Steps } from "./Steps";
import { RUN_STATES } from "../../words";

type Run = Schemas["Run"];

// A workflow can request many approvals at once. The Approvals page lists all of them.
const MOST_ASKED = 3;

export default function RunPage() {
  const { runId }: { runId: string } = useParams({ strict: false });
  // The stream reports starts and ends. Retries and steps need polling.
  const everySeconds = (found?: Run) => (found === undefined || hasEnded(found) ? null : 3);
  const run = useRead("/api/runs/{run_id}", { path: { run_id: runId } }, { everySeconds });
  if (run.data === undefined) {
    return (
      <Page title="Run" above={<Way run={null} />}>
        <Shown of={run}>{() => null}</Shown>
      </Page>
    );
  }
  // The key resets the state of the page for each run.
  return <Whole key={run.data.run_id} run={run.data} />;
}

function Whole({ run }: { run: Run }) {
  const asked = [run, ...(run.steps ?? [])].flatMap(({ approval }) =>
    approval?.status === "pending" && approval.approval_id ? [approval.approval_id] : [],
  );
  const said = sentence(run);
  return (
    <Page title={titleOf(run)} above={<Way run={run} />} actions={<RunActions run={run} />}>
      <div className="run-said" role="status">
        <Badge look={RUN_LOOKS[run.state]} />
        {said === RUN_STATES[run.state] ? null : <span dir="auto">{said}</span>}
      </div>
      {run.broken ? (
        <section className="note tone-bad" aria-label="Unreadable data">
          <span>
            Some stored data of this run cannot be read: <bdi>{run.broken}</bdi>
          </span>
        </section>
      ) : null}
      {run.error ? <Wrong run={run} /> : null}
      {asked.slice(0, MOST_ASKED).map((id) => (
        <RunApproval key={id} approvalId={id} />
      ))}
      {run.steps ? <Steps run={run} steps={run.steps} /> : null}
      <div className="columns">
        <RunFacts run={run} />
        <RunPolicies run={run} />
      </div>
      <Views run={run} />
    </Page>
  );
}

/** Link to the list, the root run and the parent run. */
function Way({ run }: { run: Run | null }) {
  return (
    <nav aria-label="Breadcrumb" className="row tight">
      <Link to="/runs">← Runs</Link>
      {run?.root_run_id && run.root_run_id !== run.parent_run_id && run.root_run_id !== run.run_id ? (
        <>
          <span aria-hidden="true">›</span>
          <Link to="/runs/$runId" params={{ runId: run.root_run_id }}>
            Root run
          </Link>
        </>
      ) : null}
      {run?.parent_run_id ? (
        <>
          <span aria-hidden="true">›</span>
          <Link to="/runs/$runId" params={{ runId: run.parent_run_id }}>
            Parent run
          </Link>
        </>
      ) : null}
    </nav>
  );
}

function Wrong({ run }: { run: Run }) {
  return (
    <section className={RUN_LOOKS[run.state].tone === "bad" ? "note tone-bad" : "note"} aria-label="Error">
      <div className="stack grow">
        {run.error_class ? <strong>{run.error_class.replaceAll("_", " ")}</strong> : null}
        <pre className="run-error" tabIndex={0} aria-label="Error message">
          {run.error}
        </pre>
      </div>
    </section>
  );
}

const TABS = [
  { id: "values", text: "Inputs and result" },
  { id: "events", text: "Events" },
  { id: "log", text: "Logs" },
  { id: "attempts", text: "Attempts" },
] as const;

function Views({ run }: { run: Run }) {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const chosen = TABS.find((tab) => tab.id === search["tab"])?.id ?? "values";
  return (
    <section className="card" aria-label="Run data">
      <Tabs
        label="Run data"
        tabs={TABS}
        chosen={chosen}
        onChoose={(tab) =>
          void navigate({
            to: ".",
            search: ((old: object) => ({ ...old, tab })) as never,
            replace: true,
            resetScroll: false,
          })
        }
      >
        {chosen === "values" ? <RunValues run={run} /> : null}
        {chosen === "events" ? <Events run={run} /> : null}
        {chosen === "log" ? <Log runId={run.run_id} /> : null}
        {chosen === "attempts" ? <Attempts run={run} /> : null}
      </Tabs>
    </section>
  );
}
