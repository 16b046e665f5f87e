// The tenants of the service, what each may use and how much of it is used.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useWrite } from "../../api/hooks";
import { useSessionQuery } from "../../api/session";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { Shown } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";

export function Namespaces() {
  const namespaces = useRead("/api/namespaces", {});
  const [making, setMaking] = useState(false);
  return (
    <div className="stack">
      <div className="row">
        <Button kind="primary" onClick={() => setMaking(true)}>
          New namespace
        </Button>
      </div>
      <Shown of={namespaces}>
        {(answer) => (
          <div className="table-frame">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Namespace</th>
                  <th scope="col">What it is for</th>
                  <th scope="col">Used of what it may</th>
                  <th scope="col">Made</th>
                </tr>
              </thead>
              <tbody>
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
              </tbody>
            </table>
          </div>
        )}
      </Shown>
      {making ? <NewNamespace onClose={() => setMaking(false)} /> : null}
    </div>
  );
}

function Quotas({ of }: { of?: Schemas["NamespaceQuotas"] | null }) {
  if (of == null) return <span className="muted">—</span>;
  const limited = Object.entries(of).filter(([, use]) => use.limit !== null);
  if (limited.length === 0) return <span className="muted">no limits</span>;
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
          say(`${name} is there`);
          void session.refetch();
          onClose();
        },
      },
    );
  return (
    <Dialog
      title="New namespace"
      onClose={onClose}
      failure={create.error}
      action={{ text: "Make it", run, busy: create.isPending, disabled: name === "" }}
    >
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} required />
      <TextField label="What it is for" value={description} onChange={(event) => setDescription(event.target.value)} />
    </Dialog>
  );
}
