// The decision about one approval request: approve, reject, approve with changed inputs, or reply to an agent.
import { useState, type ReactNode } from "react";
import { Refused, type Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { useSession } from "../../api/session";
import { Button } from "../../parts/Button";
import { TextArea, TextField } from "../../parts/Field";
import { JsonDiff, jsonText } from "../../parts/Json";
import { JsonField } from "../../parts/JsonField";
import { mergePatch, parseJson } from "../../parts/jsonInput";
import { FailureNote } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { APPROVAL_LOOKS, hasAgreed, mayDecide, refusalOf, wantedOf, type Approval } from "./questions";

// Already decided, and expired.
const OVER: ReadonlySet<number> = new Set([409, 410]);

type Body = { decision: Schemas["Decision"]; reason?: string; modifications?: unknown };

/** Nothing if the request is decided or the caller may not decide. */
export function Decide({ approval }: { approval: Approval }) {
  const session = useSession();
  if (approval.status !== "pending" || !mayDecide(session, approval)) return null;
  return <Deciding key={approval.approval_id} approval={approval} />;
}

function Deciding({ approval }: { approval: Approval }) {
  const { decide, seen, setSeen, failure, busy } = useDecision(approval);
  const [reason, setReason] = useState("");
  const wanted = wantedOf(approval);
  if (seen !== approval.input_hash) return <Changed onSeen={() => setSeen(approval.input_hash)} />;
  const why = (
    <TextField
      label="Reason"
      placeholder="Optional"
      value={reason}
      maxLength={1_000}
      onChange={(event) => setReason(event.target.value)}
    />
  );
  const because = reason.trim() === "" ? {} : { reason: reason.trim() };
  const yes = () => decide({ decision: "approve", ...because });
  const no = () => decide({ decision: "reject", ...because });
  const change = (modifications: unknown) => decide({ decision: "modify", modifications, ...because });
  const refusal = refusalOf(approval);
  const ways = { yes, no, busy, why, refused: refusal !== null };
  return (
    <div className="stack decide">
      {refusal === null ? null : <div className="note tone-warn">{refusal}</div>}
      {wanted === "yes" ? (
        <YesOrNo {...{ approval, change, ...ways }} />
      ) : (
        <Answer isSecret={wanted === "text or yes"} onSend={(reply) => change({ reply })} {...ways} />
      )}
      {failure ? <FailureNote failure={failure} /> : null}
    </div>
  );
}

/** A decision applies to the inputs that were shown: the request carries their hash. */
function useDecision(approval: Approval) {
  const [seen, setSeen] = useState(approval.input_hash);
  const write = useWrite("post", "/api/approvals/{approval_id}/decision");
  const say = useSay();
  // A toast, as the form disappears when the page receives the decision.
  const decide = (body: Body) =>
    void write.mutateAsync({ path: { approval_id: approval.approval_id }, body: { ...body, input_hash: seen } }).then(
      ({ status }) =>
        say(status === "pending" ? "Approval recorded; more approvals are required" : APPROVAL_LOOKS[status].word),
      (failure) => {
        if (failure instanceof Refused && OVER.has(failure.status)) say(`Decision failed: ${failure.message}`, "bad");
      },
    );
  return { decide, seen, setSeen, failure: write.error, busy: write.isPending };
}

function Changed({ onSeen }: { onSeen: () => void }) {
  return (
    <div className="note tone-warn" role="alert">
      <span className="grow">The inputs changed after you opened this page. Review them before you decide.</span>
      <Button small onClick={onSeen}>
        Continue with new inputs
      </Button>
    </div>
  );
}

interface Ways {
  /** The field of the reason. */
  why: ReactNode;
  yes: () => void;
  no: () => void;
  busy: boolean;
  /** The service would refuse a decision of this caller. */
  refused: boolean;
}

function YesOrNo({
  approval,
  yes,
  no,
  change,
  busy,
  refused,
  why,
}: Ways & { approval: Approval; change: (patch: unknown) => void }) {
  const [text, setText] = useState<string | null>(null);
  const agreed = hasAgreed(useSession(), approval);
  if (text !== null)
    return <Changing inputs={approval.inputs} text={text} onText={setText} onSend={change} busy={busy} why={why} />;
  return (
    <div className="stack">
      {agreed ? <p>You approved this request. More approvals are required.</p> : null}
      {why}
      <div className="row">
        {agreed ? null : (
          <Button kind="primary" busy={busy} disabled={refused} onClick={yes}>
            Approve
          </Button>
        )}
        <Button kind="danger" busy={busy} disabled={refused} onClick={no}>
          Reject
        </Button>
        <Button disabled={refused} onClick={() => setText(jsonText(approval.inputs ?? {}))}>
          Edit inputs
        </Button>
      </div>
    </div>
  );
}

/** The merge patch of the inputs, or the reason why none exists. */
function patchOf(inputs: unknown, wished: unknown): { patch: object | null; wrong: string | null } {
  if (wished === null || typeof wished !== "object" || Array.isArray(wished))
    return { patch: null, wrong: "Inputs must be a JSON object." };
  const made = mergePatch(inputs, wished);
  if (made === null)
    return {
      patch: null,
      wrong: "A field cannot be set to null. Remove the field instead.",
    };
  return Object.keys(made.patch as object).length === 0
    ? { patch: null, wrong: null }
    : { patch: made.patch as object, wrong: null };
}

interface ChangingProps {
  inputs: unknown;
  text: string;
  onText: (text: string | null) => void;
  onSend: (patch: unknown) => void;
  busy: boolean;
  why: ReactNode;
}

function Changing({ inputs, text, onText, onSend, busy, why }: ChangingProps) {
  const read = parseJson(text);
  const { patch, wrong } = read.ok ? patchOf(inputs, read.value) : { patch: null, wrong: null };
  return (
    <div className="stack">
      <JsonField
        label="Inputs"
        autoFocus
        text={text}
        onText={onText}
        wrong={wrong === null ? [] : [wrong]}
        hint="The proposed inputs are kept for comparison."
      />
      {read.ok && patch !== null ? <JsonDiff before={inputs} after={read.value} label="Changes" /> : null}
      {why}
      <div className="row">
        <Button kind="primary" busy={busy} disabled={patch === null} onClick={() => onSend(patch)}>
          Approve with changes
        </Button>
        <Button onClick={() => onText(null)}>Cancel edit</Button>
      </div>
    </div>
  );
}

function Answer({
  isSecret,
  onSend,
  yes,
  no,
  busy,
  refused,
  why,
}: Ways & { isSecret: boolean; onSend: (reply: string) => void }) {
  const [reply, setReply] = useState("");
  const field = { label: "Reply", value: reply, maxLength: 100_000 };
  return (
    <div className="stack">
      {isSecret ? (
        <TextField
          {...field}
          type="password"
          autoComplete="off"
          hint="Hidden, as it may be a password."
          onChange={(event) => setReply(event.target.value)}
        />
      ) : (
        <TextArea
          {...field}
          rows={3}
          hint="The agent continues the task with your reply."
          onChange={(event) => setReply(event.target.value)}
        />
      )}
      {why}
      <div className="row">
        <Button kind="primary" busy={busy} disabled={refused || reply.trim() === ""} onClick={() => onSend(reply)}>
          Send reply
        </Button>
        {isSecret ? (
          <Button busy={busy} disabled={refused} onClick={yes}>
            Approve without reply
          </Button>
        ) : null}
        <Button kind="danger" busy={busy} disabled={refused} onClick={no}>
          Reject
        </Button>
      </div>
    </div>
  );
}
