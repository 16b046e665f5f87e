// The secrets of the namespace. Their values cannot be read back.
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { usePages, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { DeleteDialog } from "../../parts/DeleteDialog";
import { Dialog } from "../../parts/Dialog";
import { CheckField, TextArea, TextField } from "../../parts/Field";
import { PagedTable } from "../../parts/PagedTable";
import { Empty } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { saved } from "../../words";

type Secret = Schemas["Secret"];

export function Secrets() {
  const writes = useMay("write");
  const secrets = usePages("/api/secrets", { query: { page_size: 100 } });
  const [putting, setPutting] = useState<{ name: string; hosts: string[] | null; isNew: boolean } | null>(null);
  const [deleting, setDeleting] = useState<Secret | null>(null);
  return (
    <div className="stack">
      {writes ? (
        <div className="row">
          <Button kind="primary" onClick={() => setPutting({ name: "", hosts: null, isNew: true })}>
            Create secret
          </Button>
        </div>
      ) : null}
      <PagedTable
        of={secrets}
        rowsOf={(pages) => pages.flatMap((page) => page.secrets)}
        heads={["Name", "Allowed hosts", "Version", "Updated", "Updated by", { text: "Actions", hidden: true }]}
        empty={
          <Empty title="No secrets yet">
            <p>
              A schedule refers to a secret by name, for example{" "}
              <code>{'"Authorization": {"$secret": "erp-token"}'}</code>. The service inserts the value when it sends
              the request and masks it in stored data.
            </p>
          </Empty>
        }
      >
        {(secret) => (
          <tr key={secret.name} data-row>
            <td>
              <code>{secret.name}</code> {secret.generated ? <span className="badge">generated</span> : null}
            </td>
            <td>{secret.hosts === null ? "Any" : secret.hosts.join(", ")}</td>
            <td className="number">{secret.version}</td>
            <td>
              <When at={secret.updated_at} />
            </td>
            <td>
              <bdi>{secret.principal ?? "—"}</bdi>
            </td>
            <td>
              {writes ? (
                <div className="row">
                  <Button small onClick={() => setPutting({ name: secret.name, hosts: secret.hosts, isNew: false })}>
                    Replace
                  </Button>
                  <Button small kind="danger" onClick={() => setDeleting(secret)}>
                    Delete
                  </Button>
                </div>
              ) : null}
            </td>
          </tr>
        )}
      </PagedTable>
      {putting ? <PutSecret {...putting} onClose={() => setPutting(null)} /> : null}
      {deleting ? <DeleteSecret secret={deleting} onClose={() => setDeleting(null)} /> : null}
    </div>
  );
}

function PutSecret({
  name: given,
  hosts: before,
  isNew,
  onClose,
}: {
  name: string;
  hosts: string[] | null;
  isNew: boolean;
  onClose: () => void;
}) {
  const put = useWrite("put", "/api/secrets/{secret_name}");
  const say = useSay();
  const [name, setName] = useState(given);
  const [value, setValue] = useState("");
  const [hosts, setHosts] = useState((before ?? []).join("\n"));
  const run = () => {
    const only = hosts.split(/[\s,]+/).filter(Boolean);
    put.mutate(
      { path: { secret_name: name }, body: { value, hosts: only.length > 0 ? only : null } },
      {
        onSuccess: () => {
          say(saved(name));
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      title={isNew ? "Create secret" : `Replace ${given}`}
      onClose={onClose}
      failure={put.error}
      action={{
        text: isNew ? "Save secret" : "Replace",
        run,
        busy: put.isPending,
        disabled: name === "" || value === "",
      }}
    >
      {isNew ? (
        <TextField
          label="Name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          autoComplete="off"
          required
        />
      ) : null}
      <TextField
        label="Value"
        type="password"
        autoComplete="new-password"
        value={value}
        onChange={(event) => setValue(event.target.value)}
        hint="Cannot be read back"
        required
      />
      <TextArea
        label="Allowed hosts"
        rows={3}
        value={hosts}
        onChange={(event) => setHosts(event.target.value)}
        hint="One per line: erp.example.com (HTTPS, port 443) or http://host:port. Empty = any host."
      />
    </Dialog>
  );
}

function DeleteSecret({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const remove = useWrite("delete", "/api/secrets/{secret_name}");
  const [force, setForce] = useState(false);
  return (
    <DeleteDialog
      name={secret.name}
      remove={remove}
      given={{ path: { secret_name: secret.name }, query: { force } }}
      onGone={onClose}
      onClose={onClose}
    >
      <p>A secret that is in use cannot be deleted unless you force it. Runs that need the secret then fail.</p>
      <CheckField label="Delete even if in use" checked={force} onChange={(event) => setForce(event.target.checked)} />
    </DeleteDialog>
  );
}
