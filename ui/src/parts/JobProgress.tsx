// Bulk actions: the provider above the router, the progress, and the status region of the frame.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { createContext, useContext, useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import { useNamespace } from "../api/session";
import { Button } from "./Button";
import { isActive, Jobs, statusText, type Item, type Job, type Plan } from "./jobs";
import "./many.css";
import { FailureNote } from "./Shown";
import { Table } from "./Table";
import { When } from "./When";
import { asksToConfirm } from "./wishes";

const JobsContext = createContext(new Jobs());

export function JobsProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [jobs] = useState(
    () =>
      new Jobs(() => void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[1] !== "bulk preview" })),
  );
  return (
    <JobsContext value={jobs}>
      <UnloadWarning />
      {children}
    </JobsContext>
  );
}

export function useJobs(): Jobs {
  return useContext(JobsContext);
}

export function useJobList(): readonly Job[] {
  const jobs = useJobs();
  return useSyncExternalStore(jobs.subscribe, jobs.list);
}

/** A reload would lose the rest of the work, so the browser asks first. */
function UnloadWarning() {
  const active = useJobList().some(isActive);
  useEffect(() => {
    if (!active) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [active]);
  return null;
}

/** The job of a dialog: it continues in the status region when the dialog closes or its page goes away. */
export function useDialogJob() {
  const jobs = useJobs();
  const [jobId, setJobId] = useState<number | null>(null);
  const job = useJobList().find((each) => each.jobId === jobId);
  useEffect(() => () => void (jobId !== null && jobs.closeDialog(jobId)), [jobs, jobId]);
  // A refusal of the first page leaves the form open, so that it can be corrected.
  const begun = job !== undefined && !(job.phase === "failed" && job.tally.total === 0);
  return {
    job: begun ? job : undefined,
    refusal: begun ? null : (job?.error ?? null),
    start: (plan: Plan, confirm = false) => setJobId(jobs.start(plan, confirm)),
  };
}

export function JobRegion() {
  const jobs = useJobs();
  const here = useNamespace();
  const shown = useJobList().filter((each) => !each.inDialog);
  if (shown.length === 0) return null;
  return (
    <section className="jobs" aria-label="Bulk actions">
      {shown.map((job) => (
        <div key={job.jobId} className="job">
          <div className="row far">
            <span>
              {job.title}
              {job.namespace === here ? null : <span className="muted"> in {job.namespace}</span>}
            </span>
            {isActive(job) ? null : (
              <Button small onClick={() => jobs.dismiss(job.jobId)}>
                Dismiss
              </Button>
            )}
          </div>
          <JobProgress job={job} />
        </div>
      ))}
    </section>
  );
}

export function JobProgress({ job }: { job: Job }) {
  const { phase, tally, until, error } = job;
  return (
    <div className="stack">
      <div className="row far">
        <strong role="status">{statusText(job)}</strong>
        <JobButton job={job} />
      </div>
      {phase === "done" ? null : <Bar job={job} />}
      {until ? (
        <p className="muted">
          Paused until <When at={until} />
        </p>
      ) : null}
      {error ? <FailureNote failure={error} /> : null}
      {tally.failed > 0 ? <Failures job={job} /> : null}
    </div>
  );
}

/** Without a total the bar only shows that work is in progress. */
function Bar({ job: { title, total, tally } }: { job: Job }) {
  const known = total === null ? {} : { max: total, value: Math.min(tally.total, total) };
  const done = tally.total.toLocaleString("en");
  return (
    <div className="row">
      <progress className="many-progress grow" aria-label={title} {...known} />
      <span className="muted small">{total === null ? done : `${done} of ${total.toLocaleString("en")}`}</span>
    </div>
  );
}

function JobButton({ job: { jobId, phase, error } }: { job: Job }) {
  const jobs = useJobs();
  if (phase === "done") return null;
  if (phase === "stopped" || phase === "failed") {
    const confirm = asksToConfirm(error);
    return (
      <Button small onClick={() => jobs.resume(jobId, confirm)}>
        {confirm ? "Start all" : phase === "failed" ? "Retry" : "Continue"}
      </Button>
    );
  }
  return (
    <Button small disabled={phase === "stopping"} onClick={() => jobs.stop(jobId)}>
      {phase === "stopping" ? "Stopping…" : "Stop"}
    </Button>
  );
}

function Failures({ job }: { job: Job }) {
  const { failed, failures } = job.tally;
  return (
    <details open={job.inDialog}>
      <summary>{failed.toLocaleString("en")} failed</summary>
      <Table
        frame={{ className: "table-frame many-refused", tabIndex: 0, role: "group", "aria-label": "Failed" }}
        heads={["Failed", "Reason"]}
        below={
          failed > failures.length ? (
            <p className="muted">and {(failed - failures.length).toLocaleString("en")} more</p>
          ) : null
        }
      >
        {failures.map((each) => (
          <tr key={each.id}>
            <td className="mono">
              <ItemLink job={job} item={each} />
            </td>
            <td>{each.failure}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

function ItemLink({ job: { kind, namespace }, item: { id, name } }: { job: Job; item: Item }) {
  const search = { ns: namespace } as never;
  const text = <bdi>{name ?? id}</bdi>;
  switch (kind) {
    case "schedule":
      return (
        <Link to="/schedules/$scheduleId" params={{ scheduleId: id }} search={search}>
          {text}
        </Link>
      );
    case "run":
      return (
        <Link to="/runs/$runId" params={{ runId: id }} search={search}>
          {text}
        </Link>
      );
    case "approval":
      return (
        <Link to="/approvals/$approvalId" params={{ approvalId: id }} search={search}>
          {text}
        </Link>
      );
  }
}
