// Revisions of a schedule, and the changes of fields and runs between two revisions.
import { useEffect, useRef, type RefObject } from "react";
import type { Schemas } from "../../api/client";
import { usePages, useRead } from "../../api/hooks";
import { Button } from "../../parts/Button";
import { JsonDiff } from "../../parts/Json";
import { LoadMore } from "../../parts/LoadMore";
import { Card } from "../../parts/Page";
import { FailureNote, Loading, Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import { FireChanges } from "../../parts/FireChanges";
import { Table } from "../../parts/Table";
import type { ViewProps } from "./Schedule";
import type { WholeSchedule } from "./whole";

type Revision = Schemas["Revision"];

export function Revisions({ schedule, search, change }: ViewProps) {
  const found = usePages("/api/schedules/{schedule_id}/revisions", {
    path: { schedule_id: schedule.schedule_id },
    query: { page_size: 20 },
  });
  const revisions = found.data?.pages.flatMap((page) => page.revisions) ?? [];
  const isAsked = useRef(false);
  return (
    <Card title="Revisions">
      <div className="stack">
        {found.isPending ? <Loading /> : null}
        {found.error && revisions.length === 0 ? (
          <FailureNote failure={found.error} again={() => void found.refetch()} />
        ) : null}
        {revisions.length > 0 ? (
          <>
            {revisions.length === 1 ? <p className="muted">No changes yet.</p> : null}
            <RevisionTable
              revisions={revisions}
              zone={schedule.spec.timezone}
              search={search}
              change={change}
              onWhat={(revision) => {
                isAsked.current = true;
                change({ before: revision - 1, after: revision });
              }}
            />
            <LoadMore of={found} />
          </>
        ) : null}
        {search.before !== null && search.after !== null ? (
          <Comparison
            schedule={schedule}
            before={search.before}
            after={search.after}
            revisions={revisions}
            isAsked={isAsked}
            onClose={() => change({ before: null, after: null })}
          />
        ) : null}
      </div>
    </Card>
  );
}

interface TableProps extends Pick<ViewProps, "search" | "change"> {
  revisions: readonly Revision[];
  zone: string;
  /** Show the changes of one revision. */
  onWhat: (revision: number) => void;
}

function RevisionTable({ revisions, zone, search, change, onWhat }: TableProps) {
  const radio = (name: "before" | "after", revision: number) => (
    <input
      type="radio"
      name={`revision-${name}`}
      checked={search[name] === revision}
      onChange={() => change({ [name]: revision })}
      aria-label={`${name === "before" ? "Compare from" : "Compare to"} revision ${revision}`}
    />
  );
  return (
    <Table
      className="table revisions"
      heads={[
        { text: "Revision", number: true },
        "Recorded",
        "By",
        "Note",
        "Compare from",
        "Compare to",
        { text: "Changes", hidden: true },
      ]}
    >
      {revisions.map((each) => (
        <tr key={each.revision}>
          <td className="number">{each.revision}</td>
          <td>
            <When at={each.recorded_at} zone={zone} />
          </td>
          <td>{each.principal ? <bdi>{each.principal}</bdi> : <span className="muted">—</span>}</td>
          <td dir="auto">
            {each.broken ? <span className="tone-bad">Unreadable: {each.broken}</span> : null}
            {each.note ?? (each.broken ? null : <span className="muted">—</span>)}
          </td>
          <td>{radio("before", each.revision)}</td>
          <td>{radio("after", each.revision)}</td>
          <td>
            {each.revision > 1 ? (
              <Button small onClick={() => onWhat(each.revision)}>
                Show changes<span className="visually-hidden"> in revision {each.revision}</span>
              </Button>
            ) : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface ComparisonProps {
  schedule: WholeSchedule;
  before: number;
  after: number;
  revisions: readonly Revision[];
  /** Requested from a row: scroll the answer into view. */
  isAsked: RefObject<boolean>;
  onClose: () => void;
}

function Comparison({ schedule, before, after, revisions, isAsked, onClose }: ComparisonProps) {
  const section = useRef<HTMLElement>(null);
  const found = useRead(
    "/api/schedules/{schedule_id}/revisions/compare",
    { path: { schedule_id: schedule.schedule_id }, query: { from: before, to: after } },
    { keep: true },
  );
  const isThere = found.data !== undefined && !found.isPlaceholderData;
  useEffect(() => {
    if (!isThere || !isAsked.current) return;
    isAsked.current = false;
    section.current?.scrollIntoView({ block: "nearest" });
  }, [isThere, isAsked, before, after]);
  const documentOf = (revision: number) => revisions.find((each) => each.revision === revision)?.document;
  const [old, fresh] = [documentOf(before), documentOf(after)];
  return (
    <section
      ref={section}
      className="stack comparison"
      aria-label={`Changes from revision ${before} to ${after}`}
      aria-live="polite"
    >
      <div className="row far">
        <h3>
          Changes from revision {before} to {after}
        </h3>
        <Button small kind="quiet" onClick={onClose}>
          Close
        </Button>
      </div>
      <Shown of={found}>
        {(compared) => (
          <>
            <Fields of={compared.fields} />
            {compared.changes === null ? (
              <p className="muted">
                Runs cannot be compared because the server can no longer plan one of these revisions.
              </p>
            ) : (
              <FireChanges changes={compared.changes} zone={schedule.spec.timezone} />
            )}
          </>
        )}
      </Shown>
      {old !== undefined && fresh !== undefined && before !== after ? (
        <details>
          <summary>Document diff</summary>
          <JsonDiff before={old} after={fresh} label={`Documents of revisions ${before} and ${after}`} />
        </details>
      ) : null}
    </section>
  );
}

const MOST_FIELDS = 100;

function Fields({ of }: { of: readonly Schemas["RevisionField"][] }) {
  if (of.length === 0) return <p>No fields changed.</p>;
  return (
    <Table
      className="table fields"
      caption="Changed fields"
      heads={["Field", "Before", "After"]}
      below={of.length > MOST_FIELDS ? <p className="muted">and {of.length - MOST_FIELDS} more</p> : null}
    >
      {of.slice(0, MOST_FIELDS).map((field) => (
        <tr key={field.path}>
          <td>
            <code dir="auto">{field.path}</code>
          </td>
          <td className="removed">
            <Value of={field.before} />
          </td>
          <td className="added">
            <Value of={field.after} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Value({ of }: { of: unknown }) {
  if (of === null || of === undefined) return <span className="muted">Not set</span>;
  return <code dir="auto">{typeof of === "string" ? of : JSON.stringify(of)}</code>;
}
