// The processes, queues, readiness and metrics of the service.
import type { ReactNode } from "react";
import { useRead } from "../../api/hooks";
import { useMay, useSession } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { Card, Facts, Page } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { durationText } from "../../time/zones";
import "./cluster.css";
import { Metrics } from "./Metrics";
import { isHere, Processes, Workers } from "./Processes";
import { Queues } from "./Queues";
import { useReadiness } from "./reading";
import { capitalised, NONE } from "../../words";
import { checkText } from "../../words/cluster";

const EVERY_SECONDS = 5;
const ADMIN_NAMESPACE = "default";

export default function Cluster() {
  const session = useSession();
  const isAdminNamespace = session.everywhere || session.namespace === ADMIN_NAMESPACE;
  const administers = useMay("administer") && isAdminNamespace;
  const reads = useMay("read") && isAdminNamespace;
  return (
    <Page title="Cluster" about="Processes, queues and metrics. Updated every 5 seconds.">
      <div className="columns">
        <Readiness />
        <About />
      </div>
      {administers ? (
        <Service />
      ) : (
        <Restricted>
          Processes and queues cover all namespaces. To see them, use a token with the role admin in the namespace{" "}
          {ADMIN_NAMESPACE}.
        </Restricted>
      )}
      {reads ? (
        <Metrics />
      ) : administers ? null : (
        <Restricted>
          Metrics cover all namespaces. To see them, use a token of the namespace {ADMIN_NAMESPACE}.
        </Restricted>
      )}
    </Page>
  );
}

function Restricted({ children }: { children: ReactNode }) {
  return <p className="note tone-info">{children}</p>;
}

function Readiness() {
  const readiness = useReadiness();
  return (
    <Card title="Readiness">
      <Shown of={readiness}>
        {(health) => (
          <div className="stack">
            <div>
              <Badge
                look={
                  health.ready
                    ? { word: "ready", tone: "ok", shape: "disc" }
                    : { word: "not ready", tone: "bad", shape: "alert" }
                }
                text={health.ready ? "Healthy" : "Not ready"}
              />
            </div>
            <ul className="plain readiness">
              {(health.checks ?? []).map((check) => (
                <li key={check.name}>
                  <Badge
                    look={
                      check.passed
                        ? { word: "passed", tone: "ok", shape: "disc" }
                        : { word: "failed", tone: "bad", shape: "alert" }
                    }
                    text={checkText(check.name)}
                  />
                  <span className="grow">
                    {check.detail ? capitalised(check.detail) : null}
                    {check.remedy ? <span className="muted"> {capitalised(check.remedy)}.</span> : null}
                  </span>
                </li>
              ))}
            </ul>
          </div>
        )}
      </Shown>
    </Card>
  );
}

function About() {
  const info = useRead("/api/cluster/info", {}, { live: false, staleSeconds: 60 });
  return (
    <Card title="This server">
      <Shown of={info}>
        {(found) => (
          <Facts
            of={[
              ["Server", `${found.server} ${found.version}`],
              ["Time zone data", `tzdata ${found.tzdata}`],
              ["Control plane", `version ${found.control_plane.version}`],
            ]}
          />
        )}
      </Shown>
    </Card>
  );
}

function Service() {
  const cluster = useRead("/api/cluster/processes", {}, { live: false, everySeconds: EVERY_SECONDS });
  const here = cluster.data?.processes.filter(isHere) ?? [];
  const gone = (cluster.data?.processes.length ?? 0) - here.length;
  return (
    <Shown of={cluster}>
      {(found) => (
        <>
          {found.notes.map((note) => (
            <p key={note} className="note tone-warn">
              {note}
            </p>
          ))}
          <div className="figures">
            <Figure
              name="Scheduler lag"
              value={durationText(found.tick_lag_seconds)}
              hint="Age of the oldest undecided occurrence"
              warns={found.tick_lag_seconds > 10}
            />
            <Figure
              name="Dispatch lag"
              value={found.oldest_ready_seconds === null ? NONE : durationText(found.oldest_ready_seconds)}
              hint="Age of the oldest ready run"
              warns={(found.oldest_ready_seconds ?? 0) > 60}
            />
            <Figure
              name="Processes"
              value={String(here.length)}
              hint={`Schema ${found.schema_revision ?? "unknown"}${gone > 0 ? `; ${gone} gone` : ""}`}
              warns={here.length === 0}
            />
            <Figure
              name="Active runs"
              value={String(found.processes.reduce((sum, each) => sum + each.runs, 0))}
              hint="In these processes"
              warns={false}
            />
          </div>
          <Card title="Processes">
            <Processes of={found.processes} version={found.version} />
          </Card>
          <Card title="Queues">
            <Queues of={found.queues} />
          </Card>
          {found.workers.length > 0 ? (
            <Card title="Workers">
              <Workers of={found.workers} />
            </Card>
          ) : null}
          {found.more ? (
            <p className="note tone-info">Too many rows to count or show. These numbers are lower bounds.</p>
          ) : null}
        </>
      )}
    </Shown>
  );
}

function Figure({ name, value, hint, warns }: { name: string; value: string; hint: string; warns: boolean }) {
  return (
    <div className={warns ? "figure tone-warn" : "figure"}>
      <div className="muted small">{name}</div>
      <div className="figure-value">{value}</div>
      <div className="muted small">{hint}</div>
    </div>
  );
}
