// The namespaces of the service, their quotas and usage.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useWrite } from "../../api/hooks";
import { useSessionQuery } from "../../api/session";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { Shown } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { CREATE, created } from "../../words";

export function Namespaces() {
  const namespaces = useRead("/api/namespaces", {});
  const [creating, setCreating] = useState(false);
  return (
    <div className="stack">
      <div className="row">
        <Button kind="primary" onClick={() => setCreating(true)}>
          Create namespace
        </Button>
      </div>
      <Shown of={namespaces}>
        {(answer) => (
          <Table heads={["Namespace", "Description", "Quota", "Created"]}>
            {answer.namespaces.map((each) => (
              <tr key={each.namespace} data-row>
                <td>
                  <Link to="/" search={{ ns: each.namespace } as never}>
                    <bdi>{each.namespace}</bdi>
                  </Link>
                </td>
                <td>
                  <bdi>{each.description || "—"}</bdi>
                </td>
                <td>
                  <Quotas of={each.quotas} />
                </td>
                <td>
                  <When at={each.created_at} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Shown>
      {creating ? <NewNamespace onClose={() => setCreating(false)} /> : null}
    </div>
  );
}

function Quotas({ of }: { of?: Schemas["NamespaceQuotas"] | null }) {
  if (of == null) return <span className="muted">—</span>;
  const limited = Object.entries(of).filter(([, use]) => use.limit !== null);
  if (limited.length === 0) return <span className="muted">No limits</span>;
  return (
    <ul className="plain small">
      {limited.map(([name, use]) => (
        <li key={name}>
          {name.replaceAll("_", " ")}: {use.used ?? "—"} of {use.limit}
        </li>
      ))}
    </ul>
  );
}

function NewNamespace({ onClose }: { onClose: () => void }) {
  const create = useWrite("post", "/api/namespaces");
  const session = useSessionQuery();
  const say = useSay();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const run = () =>
    create.mutate(
      { body: { namespace: name, description } },
      {
        onSuccess: () => {
          say(created(name));
          void session.refetch();
          onClose();
        },
      },
    );
  return (
    <Dialog
      title="Create namespace"
      onClose={onClose}
      failure={create.error}
      action={{ text: CREATE, run, busy: create.isPending, disabled: name === "" }}
    >
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} required />
      <TextField label="Description" value={description} onChange={(event) => setDescription(event.target.value)} />
    </Dialog>
  );
}
