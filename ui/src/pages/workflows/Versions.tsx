// Versions of a workflow, newest first, and the differences between two versions.
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { usePages, useRead } from "../../api/hooks";
import { JsonDiff } from "../../parts/Json";
import { LoadMore } from "../../parts/LoadMore";
import { Card } from "../../parts/Page";
import { SelectField } from "../../parts/Field";
import { FailureNote, Loading } from "../../parts/Shown";
import { When } from "../../parts/When";
import "./workflows.css";

export function Versions({ workflowId, current }: { workflowId: string; current: number }) {
  const versions = usePages("/api/workflows/{workflow_id}/versions", {
    path: { workflow_id: workflowId },
    query: { page_size: 20 },
  });
  // A link may name the version to compare with.
  const { against }: { against?: unknown } = useSearch({ strict: false });
  const [other, setOther] = useState(Number.isInteger(against) ? String(against) : "");
  const found = versions.data?.pages.flatMap((page) => page.versions) ?? [];
  return (
    <Card title="Versions">
      {versions.error ? <FailureNote failure={versions.error} /> : null}
      {versions.isPending ? <Loading /> : null}
      <ul className="plain stack">
        {found.map((each) => (
          <li key={each.version} className="row" data-row>
            <Link to="/workflows/$workflowId" params={{ workflowId }} search={{ version: each.version } as never}>
              Version {each.version}
            </Link>
            <span className="muted">{each.nodes === 1 ? "1 node" : `${each.nodes ?? "—"} nodes`}</span>
            <When at={each.created_at} />
            {each.created_by ? (
              <span className="muted">
                by <bdi>{each.created_by}</bdi>
              </span>
            ) : null}
          </li>
        ))}
      </ul>
      <LoadMore of={versions} />
      {found.length > 1 ? (
        <div className="stack compare">
          <SelectField
            label={`Compare version ${current} with`}
            choices={[
              ["", "None"] as const,
              ...found
                .filter((each) => each.version !== current)
                .map((each) => [String(each.version), `Version ${each.version}`] as const),
            ]}
            value={other}
            onChange={(event) => setOther(event.target.value)}
          />
          {other ? <Compared workflowId={workflowId} one={Number(other)} two={current} /> : null}
        </div>
      ) : null}
    </Card>
  );
}

function Compared({ workflowId, one, two }: { workflowId: string; one: number; two: number }) {
  const [older, newer] = [Math.min(one, two), Math.max(one, two)];
  const before = useRead(
    "/api/workflows/{workflow_id}",
    { path: { workflow_id: workflowId }, query: { version: String(older) } },
    { live: false },
  );
  const after = useRead(
    "/api/workflows/{workflow_id}",
    { path: { workflow_id: workflowId }, query: { version: String(newer) } },
    { live: false },
  );
  const failure = before.error ?? after.error;
  if (failure) return <FailureNote failure={failure} />;
  if (!before.data || !after.data) return <Loading />;
  return (
    <JsonDiff
      before={before.data.document}
      after={after.data.document}
      label={`Version ${older} and version ${newer}`}
    />
  );
}
