// The tokens of the namespace: create, rotate, revoke. A secret is shown once, when it is created.
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useWrite } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import type { Look } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { SelectField, TextField } from "../../parts/Field";
import { isolated } from "../../parts/isolated";
import { Empty, Shown } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { useNow } from "../../time/now";
import { CREATE, NONE } from "../../words";
import { IssuedSecret } from "./IssuedSecret";

type Token = Schemas["Token"];

const ROLES = [
  ["viewer", "Viewer: read"],
  ["operator", "Operator: read, pause, trigger, stop, approve"],
  ["owner", "Owner: operator, plus write own objects"],
  ["agent", "Agent: process own runs, write own schedules"],
  ["admin", "Admin: everything in the namespace"],
] as const;
const LIVES = [
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In 1 year"],
  ["", "Never"],
] as const;

export function Tokens() {
  const tokens = useRead("/api/tokens", {});
  const [creating, setCreating] = useState(false);
  const [rotating, setRotating] = useState<Token | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const [issued, setIssued] = useState<Schemas["IssuedToken"] | null>(null);
  return (
    <div className="stack">
      <div className="row">
        <Button kind="primary" onClick={() => setCreating(true)}>
          Create token
        </Button>
      </div>
      <Shown of={tokens}>
        {(answer) =>
          answer.tokens.length === 0 ? (
            <Empty title="No tokens yet">
              <p>Create one token for each person and program, with a role and an expiry date.</p>
            </Empty>
          ) : (
            <Table heads={["Name", "State", "Role", "Last used", "Expires", { text: "Actions", hidden: true }]}>
              {answer.tokens.map((token) => (
                <Row
                  key={token.token_id}
                  token={token}
                  onRotate={() => setRotating(token)}
                  onRevoke={() => setRevoking(token)}
                />
              ))}
            </Table>
          )
        }
      </Shown>
      {creating ? <NewToken onClose={() => setCreating(false)} onIssued={setIssued} /> : null}
      {rotating ? <Rotate token={rotating} onClose={() => setRotating(null)} onIssued={setIssued} /> : null}
      {revoking ? <Revoke token={revoking} onClose={() => setRevoking(null)} /> : null}
      {issued ? <IssuedSecret token={issued} onClose={() => setIssued(null)} /> : null}
    </div>
  );
}

const ACTIVE: Look = { word: "Active", tone: "ok", shape: "disc" };
const REVOKED: Look = { word: "Revoked", tone: "quiet", shape: "slash" };
const EXPIRED: Look = { word: "Expired", tone: "quiet", shape: "slash" };

export function tokenLook(token: Pick<Token, "revoked_at" | "expires_at">, now: number): Look {
  if (token.revoked_at !== null) return REVOKED;
  return token.expires_at !== null && Date.parse(token.expires_at) <= now ? EXPIRED : ACTIVE;
}

function Row({ token, onRotate, onRevoke }: { token: Token; onRotate: () => void; onRevoke: () => void }) {
  const look = tokenLook(token, useNow());
  return (
    <tr data-row>
      <td>
        <bdi>{token.name}</bdi>
        {token.subject ? <div className="small muted">Subject: {token.subject}</div> : null}
        {token.queues ? <div className="small muted">Queues: {token.queues.join(", ") || NONE}</div> : null}
      </td>
      <td>
        <Badge look={look} />
      </td>
      <td>{token.role}</td>
      <td>
        <When at={token.last_used_at} brief none="Never" />
      </td>
      <td>
        <When at={token.expires_at} none="Never" />
        {token.previous_until ? (
          <div className="small muted">
            Previous secret valid until <When at={token.previous_until} brief />
          </div>
        ) : null}
      </td>
      <td>
        {look === ACTIVE ? (
          <div className="row">
            <Button small onClick={onRotate}>
              Rotate
            </Button>
            <Button small kind="danger" onClick={onRevoke}>
              Revoke
            </Button>
          </div>
        ) : null}
      </td>
    </tr>
  );
}

interface Issuing {
  onClose: () => void;
  onIssued: (token: Schemas["IssuedToken"]) => void;
}

function NewToken({ onClose, onIssued }: Issuing) {
  const create = useWrite("post", "/api/tokens");
  const now = useNow();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Schemas["Role"]>("viewer");
  const [days, setDays] = useState("90");
  const [queues, setQueues] = useState("");
  const send = () => {
    const expires = days === "" ? null : new Date(now + Number(days) * 86_400_000).toISOString();
    const only = queues.split(/[\s,]+/).filter(Boolean);
    create.mutate(
      { body: { name, role, expires_at: expires, ...(role === "agent" && only.length > 0 ? { queues: only } : {}) } },
      {
        onSuccess: (token) => {
          onIssued(token);
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      title="Create token"
      onClose={onClose}
      failure={create.error}
      action={{ text: CREATE, run: send, busy: create.isPending, disabled: name.trim() === "" }}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        hint="Person or program that uses the token"
        required
      />
      <SelectField
        label="Role"
        choices={ROLES}
        value={role}
        onChange={(event) => setRole(event.target.value as Schemas["Role"])}
      />
      <SelectField label="Expires" choices={LIVES} value={days} onChange={(event) => setDays(event.target.value)} />
      {role === "agent" ? (
        <TextField
          label="Queues"
          value={queues}
          onChange={(event) => setQueues(event.target.value)}
          hint="Queues from which the token may claim runs, separated by commas. Empty = all."
        />
      ) : null}
    </Dialog>
  );
}

const OVERLAPS = [
  ["0", "Immediately"],
  ["3600", "In 1 hour"],
  ["86400", "In 1 day"],
] as const;

function Rotate({ token, onClose, onIssued }: Issuing & { token: Token }) {
  const rotate = useWrite("post", "/api/tokens/{token_id}/rotate");
  const [overlap, setOverlap] = useState("3600");
  const run = () =>
    rotate.mutate(
      { path: { token_id: token.token_id }, body: { overlap_seconds: Number(overlap) } },
      {
        onSuccess: (fresh) => {
          onIssued(fresh);
          onClose();
        },
      },
    );
  return (
    <Dialog
      title={`Rotate ${isolated(token.name)}`}
      onClose={onClose}
      failure={rotate.error}
      action={{ text: "Rotate", run, busy: rotate.isPending }}
    >
      <p>The token gets a new secret. Its name and role do not change.</p>
      <SelectField
        label="Previous secret expires"
        choices={OVERLAPS}
        value={overlap}
        onChange={(event) => setOverlap(event.target.value)}
      />
    </Dialog>
  );
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const revoke = useWrite("delete", "/api/tokens/{token_id}");
  const say = useSay();
  const run = () =>
    revoke.mutate(
      { path: { token_id: token.token_id } },
      {
        onSuccess: () => {
          say(`${isolated(token.name)} revoked`);
          onClose();
        },
      },
    );
  return (
    <Dialog
      title={`Revoke ${isolated(token.name)}?`}
      onClose={onClose}
      failure={revoke.error}
      action={{ text: "Revoke", kind: "danger", run, busy: revoke.isPending }}
    >
      <p>The token stops working immediately. Its browser sessions and open streams end. You cannot undo this.</p>
    </Dialog>
  );
}
