// The tokens of the namespace: make, rotate, revoke. A secret is shown once, when it is made.
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
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { useNow } from "../../time/now";
import { IssuedSecret } from "./IssuedSecret";

type Token = Schemas["Token"];

const ROLES = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: reads, pauses, triggers, stops"],
  ["owner", "owner: also writes what is its own"],
  ["agent", "agent: takes runs and reports on them"],
  ["admin", "admin: everything in the namespace"],
] as const;
const LIVES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "a year"],
  ["", "no end"],
] as const;

export function Tokens() {
  const tokens = useRead("/api/tokens", {});
  const [making, setMaking] = useState(false);
  const [rotating, setRotating] = useState<Token | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const [issued, setIssued] = useState<Schemas["IssuedToken"] | null>(null);
  return (
    <div className="stack">
      <div className="row">
        <Button kind="primary" onClick={() => setMaking(true)}>
          New token
        </Button>
      </div>
      <Shown of={tokens}>
        {(answer) =>
          answer.tokens.length === 0 ? (
            <Empty title="No tokens yet">
              <p>
                The operator's own token is in the settings. Programs and people get tokens of their own, each with a
                role and an end.
              </p>
            </Empty>
          ) : (
            <div className="table-frame">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">Role</th>
                    <th scope="col">Last used</th>
                    <th scope="col">Ends</th>
                    <th scope="col">
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {answer.tokens.map((token) => (
                    <Row
                      key={token.token_id}
                      token={token}
                      onRotate={() => setRotating(token)}
                      onRevoke={() => setRevoking(token)}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Shown>
      {making ? <NewToken onClose={() => setMaking(false)} onIssued={setIssued} /> : null}
      {rotating ? <Rotate token={rotating} onClose={() => setRotating(null)} onIssued={setIssued} /> : null}
      {revoking ? <Revoke token={revoking} onClose={() => setRevoking(null)} /> : null}
      {issued ? <IssuedSecret name={issued.name} secret={issued.secret} onClose={() => setIssued(null)} /> : null}
    </div>
  );
}

const GOOD: Look = { word: "good", tone: "ok", shape: "disc" };
const REVOKED: Look = { word: "revoked", tone: "quiet", shape: "slash" };
const ENDED: Look = { word: "ended", tone: "quiet", shape: "slash" };

export function tokenLook(token: Pick<Token, "revoked_at" | "expires_at">, now: number): Look {
  if (token.revoked_at !== null) return REVOKED;
  return token.expires_at !== null && Date.parse(token.expires_at) <= now ? ENDED : GOOD;
}

function Row({ token, onRotate, onRevoke }: { token: Token; onRotate: () => void; onRevoke: () => void }) {
  const look = tokenLook(token, useNow());
  return (
    <tr data-row>
      <td>
        <bdi>{token.name}</bdi>
        {token.subject ? <div className="small muted">speaks for {token.subject}</div> : null}
        {token.queues ? <div className="small muted">queues: {token.queues.join(", ") || "none"}</div> : null}
      </td>
      <td>
        <Badge look={look} />
      </td>
      <td>{token.role}</td>
      <td>
        <When at={token.last_used_at} brief none="never" />
      </td>
      <td>
        <When at={token.expires_at} none="no end" />
        {token.previous_until ? (
          <div className="small muted">
            the one before is good until <When at={token.previous_until} brief />
          </div>
        ) : null}
      </td>
      <td>
        {look === GOOD ? (
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
  const make = () => {
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
      title="New token"
      onClose={onClose}
      failure={create.error}
      action={{ text: "Make it", run: make, busy: create.isPending, disabled: name.trim() === "" }}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        hint="whoever holds it: a person, a program"
        required
      />
      <SelectField
        label="Role"
        choices={ROLES}
        value={role}
        onChange={(event) => setRole(event.target.value as Schemas["Role"])}
      />
      <SelectField label="Good for" choices={LIVES} value={days} onChange={(event) => setDays(event.target.value)} />
      {role === "agent" ? (
        <TextField
          label="Queues"
          value={queues}
          onChange={(event) => setQueues(event.target.value)}
          hint="from which it may take runs; none = all"
        />
      ) : null}
    </Dialog>
  );
}

const OVERLAPS = [
  ["0", "end at once"],
  ["3600", "stay good for an hour"],
  ["86400", "stay good for a day"],
] as const;

function Rotate({ token, onClose, onIssued }: Issuing & { token: Token }) {
  const rotate = useWrite("post", "/api/tokens/{token_id}/rotate");
  const [overlap, setOverlap] = useState("3600");
  const run = () =>
    rotate.mutate(
      { path: { token_id: token.token_id }, body: { overlap_seconds: Number(overlap) } },
      {
        onSuccess: (fresh) => {
          onIssued(fresh as Schemas["IssuedToken"]);
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
      <p>A new secret is made under the same name. The one before should</p>
      <SelectField
        label="The secret before"
        bare
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
          say(`${isolated(token.name)} is revoked`);
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
      <p>Whoever uses it is refused from now on, also in open sessions and streams. It cannot be taken back.</p>
    </Dialog>
  );
}
