// The audit entries as a table with expandable details.
import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { Badge } from "../../marks/Mark";
import type { Look } from "../../marks/outcomes";
import { Json } from "../../parts/Json";
import { Facts } from "../../parts/Page";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { actText, countOf, isRefusal, leadOf, subjectOf, type Entry } from "./audit";

const REFUSED: Look = { word: "Denied", tone: "warn", shape: "slash" };
const DONE: Look = { word: "Done", tone: "info", shape: "disc" };

export function Entries({ of }: { of: readonly Entry[] }) {
  return (
    <Table
      region="Audit entries"
      className="table audit-table"
      heads={[
        { text: "No.", number: true },
        "Time",
        "Principal",
        "Action",
        "Target",
        "Source",
        { text: "Details", hidden: true },
      ]}
    >
      {of.map((entry) => (
        <EntryRows key={entry.sequence} entry={entry} />
      ))}
    </Table>
  );
}

function EntryRows({ entry }: { entry: Entry }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const many = countOf(entry);
  return (
    <>
      <tr>
        <td className="number muted">{entry.sequence}</td>
        <td>
          <When at={entry.recorded_at} />
        </td>
        <td className="audit-who">
          {entry.principal === null ? <span className="muted">Anonymous</span> : <bdi>{entry.principal}</bdi>}
        </td>
        <td>
          <Badge look={isRefusal(entry.act) ? REFUSED : DONE} text={actText(entry.act)} />
          {many > 1 ? <span className="muted small"> × {many}</span> : null}
        </td>
        <td className="audit-subject">
          <Subject entry={entry} />
        </td>
        <td className="muted">{entry.source ?? "—"}</td>
        <td>
          <button
            type="button"
            className="button small quiet"
            aria-expanded={open}
            aria-controls={id}
            onClick={() => setOpen(!open)}
          >
            {open ? "Hide" : "Details"}
            <span className="visually-hidden"> of entry {entry.sequence}</span>
          </button>
        </td>
      </tr>
      <tr id={id} hidden={!open} className="audit-detail">
        <td />
        <td colSpan={6}>{open ? <Detail entry={entry} /> : null}</td>
      </tr>
    </>
  );
}

function Subject({ entry }: { entry: Entry }) {
  const subject = subjectOf(entry);
  if (subject === null) return <span className="muted">—</span>;
  const lead = leadOf(entry);
  if (lead === null) return <bdi>{subject}</bdi>;
  return (
    <Link to={lead.to as never} params={lead.params as never} search={(lead.search ?? {}) as never}>
      <bdi>{subject}</bdi>
      {lead.search ? " · View changes" : null}
    </Link>
  );
}

function Detail({ entry }: { entry: Entry }) {
  const { before, after, ...rest } = entry.detail;
  return (
    <div className="stack">
      <Facts
        of={[
          ["Client address", entry.address ?? "—"],
          ["Request ID", <code key="request">{entry.request_id ?? "—"}</code>],
          ["Namespace", <bdi key="namespace">{entry.namespace}</bdi>],
          ["Hash", <code key="hash">{entry.hash}</code>],
          ...(before === undefined ? [] : [["Before", <Json key="before" value={before} label="Before" />] as const]),
          ...(after === undefined ? [] : [["After", <Json key="after" value={after} label="After" />] as const]),
        ]}
      />
      <Json value={rest} label={`Details of entry ${entry.sequence}`} />
    </div>
  );
}
