// The processes on the database, and the workers with runs of pull queues.
import type { Schemas } from "../../api/client";
import { Badge } from "../../marks/Mark";
import type { Look } from "../../marks/outcomes";
import { Empty } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { durationText } from "../../time/zones";

const STATE_LOOKS: Record<Schemas["ProcessState"], Look> = {
  alive: { word: "Alive", tone: "ok", shape: "disc" },
  draining: { word: "Draining", tone: "info", shape: "half" },
  silent: { word: "Silent", tone: "warn", shape: "triangle" },
  gone: { word: "Gone", tone: "bad", shape: "alert" },
};

// In seconds. A larger offset makes occurrences noticeably late or early.
const NOTABLE_OFFSET = 1;

/** A process that is gone has no stuck loops. */
export function isHere({ state }: Pick<Schemas["ClusterProcess"], "state">): boolean {
  return state !== "gone";
}

export function Processes({ of, version }: { of: readonly Schemas["ClusterProcess"][]; version: string }) {
  if (of.length === 0) {
    return (
      <Empty title="No processes">
        <p>
          Each process that decides or dispatches runs reports here every few seconds. Start one with{" "}
          <code>horarium up</code> or <code>horarium worker</code>.
        </p>
      </Empty>
    );
  }
  return (
    <Table
      region="Table of processes"
      frame={{ className: "table-frame cluster-frame" }}
      heads={[
        "Process",
        "State",
        "Roles",
        "Version",
        { text: "Active runs", number: true },
        { text: "Clock offset", number: true },
        "Started",
      ]}
    >
      {of.map((each) => (
        <ProcessRow key={each.name} process={each} version={version} />
      ))}
    </Table>
  );
}

function ProcessRow({ process, version }: { process: Schemas["ClusterProcess"]; version: string }) {
  const isOther = process.version !== null && process.version !== version;
  return (
    <tr>
      <th scope="row" className="process-name">
        <bdi>{process.host}</bdi>
        <div className="muted small mono">{process.name}</div>
      </th>
      <td>
        <Badge look={STATE_LOOKS[process.state]} />
        <div className="muted small nowrap">{durationText(process.seconds_ago)} ago</div>
        {process.stuck.length > 0 && isHere(process) ? (
          <div className="tone-bad small">Stuck: {process.stuck.join(", ")}</div>
        ) : null}
      </td>
      <td className="process-roles">{process.roles.join(", ")}</td>
      <td>
        <span className="nowrap">{process.version ?? "—"}</span>
        {isOther ? <div className="tone-warn small nowrap">Differs from this server</div> : null}
        <div className="muted small nowrap">Schema {process.schema_revision ?? "—"}</div>
      </td>
      <td className="number">{process.runs}</td>
      <td
        className={`number nowrap ${Math.abs(process.clock_offset_seconds ?? 0) >= NOTABLE_OFFSET ? "tone-warn" : ""}`}
      >
        {offsetText(process.clock_offset_seconds)}
      </td>
      <td>
        <When at={process.started_at} brief />
      </td>
    </tr>
  );
}

/** The offset from the database clock, such as "3 ms behind". */
export function offsetText(seconds: number | null): string {
  if (seconds === null) return "—";
  if (Math.abs(seconds) < 0.0005) return "In sync";
  return `${durationText(Math.abs(seconds))} ${seconds > 0 ? "behind" : "ahead"}`;
}

export function Workers({ of }: { of: readonly Schemas["ClusterWorker"][] }) {
  return (
    <Table
      region="Table of workers"
      frame={{ className: "table-frame cluster-frame" }}
      heads={["Worker", "State", "Last seen", { text: "Active runs", number: true }]}
    >
      {of.map((each) => (
        <tr key={each.name}>
          <th scope="row">
            <bdi>{each.name}</bdi>
          </th>
          <td>
            <Badge look={STATE_LOOKS[each.state]} />
          </td>
          <td className="nowrap">{durationText(each.seconds_ago)} ago</td>
          <td className="number">{each.runs}</td>
        </tr>
      ))}
    </Table>
  );
}
