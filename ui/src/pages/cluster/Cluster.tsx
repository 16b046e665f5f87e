// The machines behind the service: which processes are there, in which version, how far behind, what waits, what is wrong.
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

const EVERY_SECONDS = 5;
const HOUSE = "default";

export default function Cluster() {
  const session = useSession();
  const isOfTheHouse = session.everywhere || session.namespace === HOUSE;
  const administers = useMay("administer") && isOfTheHouse;
  const reads = useMay("read") && isOfTheHouse;
  return (
    <Page title="Cluster" about="The processes behind the service. Looked at every five seconds.">
      <div className="columns">
        <Readiness />
        <About />
      </div>
      {administers ? (
        <House />
      ) : (
        <NotYours>
          Processes, queues and lag tell of all tenants: they are for admins of the namespace {HOUSE}.
        </NotYours>
      )}
      {reads ? (
        <Metrics />
      ) : administers ? null : (
        <NotYours>The metrics tell of all tenants, too: they are for tokens of the namespace {HOUSE}.</NotYours>
      )}
    </Page>
  );
}

function NotYours({ children }: { children: ReactNode }) {
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
                text={health.ready ? "The service does its work" : "The service does not do all of its work"}
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
                    text={check.name}
                  />
                  <span className="grow">
                    {check.detail}
                    {check.remedy ? <span className="muted"> {check.remedy}</span> : null}
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
              ["Time zones", `tzdata ${found.tzdata}`],
              ["Control plane", `version ${found.control_plane.version}`],
            ]}
          />
        )}
      </Shown>
    </Card>
  );
}

function House() {
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
              name="Undecided for"
              value={durationText(found.tick_lag_seconds)}
              hint="the oldest occurrence that nobody has decided"
              warns={found.tick_lag_seconds > 10}
            />
            <Figure
              name="Ready for"
              value={found.oldest_ready_seconds === null ? "none waits" : durationText(found.oldest_ready_seconds)}
              hint="the oldest run that nobody has taken"
              warns={(found.oldest_ready_seconds ?? 0) > 60}
            />
            <Figure
              name="Processes"
              value={String(here.length)}
              hint={`on tables of revision ${found.schema_revision ?? "unknown"}${gone > 0 ? `; ${gone} gone` : ""}`}
              warns={here.length === 0}
            />
            <Figure
              name="Runs in hands"
              value={String(found.processes.reduce((sum, each) => sum + each.runs, 0))}
              hint="of these processes"
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
            <p className="note tone-info">
              There was too much to count or to show all of it: these numbers are at least what there is.
            </p>
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
