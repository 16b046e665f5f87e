// List of the workflows in the namespace.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { usePages } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { Page } from "../../parts/Page";
import { PagedTable } from "../../parts/PagedTable";
import { Empty } from "../../parts/Shown";
import { When } from "../../parts/When";
import { NewWorkflow } from "./NewWorkflow";

export default function Workflows() {
  const writes = useMay("write");
  const navigate = useNavigate();
  const { text: given }: { text?: unknown } = useSearch({ strict: false });
  const text = typeof given === "string" ? given.slice(0, 200) : "";
  const workflows = usePages("/api/workflows", { query: { page_size: 100, text: text || undefined } });
  const [making, setMaking] = useState(false);
  return (
    <Page
      title="Workflows"
      about="Versioned graphs of steps that schedules and API calls start."
      actions={
        writes ? (
          <Button kind="primary" onClick={() => setMaking(true)}>
            Create workflow
          </Button>
        ) : null
      }
    >
      <div className="row">
        <TextField
          label="Search workflows"
          bare
          type="search"
          placeholder="Search by ID or name"
          value={text}
          onChange={(event) =>
            void navigate({
              to: "/workflows",
              search: { text: event.target.value || undefined } as never,
              replace: true,
            })
          }
        />
      </div>
      <PagedTable
        of={workflows}
        rowsOf={(pages) => pages.flatMap((page) => page.workflows)}
        heads={["Workflow", { text: "Version", number: true }, { text: "Nodes", number: true }, "Owner", "Updated"]}
        empty={
          <Empty title={text ? "No matching workflows" : "No workflows yet"}>
            {text ? null : (
              <p>
                A workflow is a document that lists nodes and their dependencies. Create one here or with{" "}
                <code>horarium workflow put</code>.
              </p>
            )}
          </Empty>
        }
      >
        {(each) => (
          <tr key={each.workflow_id} data-row>
            <td>
              <Link to="/workflows/$workflowId" params={{ workflowId: each.workflow_id }}>
                <bdi>{each.name || each.workflow_id}</bdi>
              </Link>
              {each.name ? <div className="small muted mono">{each.workflow_id}</div> : null}
            </td>
            <td className="number">{each.version}</td>
            <td className="number">{each.nodes ?? "—"}</td>
            <td>
              <bdi>{each.owner ?? "—"}</bdi>
              {each.bundle ? <div className="small muted">Bundle {each.bundle}</div> : null}
            </td>
            <td>
              <When at={each.created_at} />
            </td>
          </tr>
        )}
      </PagedTable>
      {making ? <NewWorkflow onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}
