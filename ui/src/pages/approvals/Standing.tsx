// Standing approvals: list, create, revoke.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { usePages, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Refused } from "../../api/client";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { SelectField, TextField } from "../../parts/Field";
import { PagedTable } from "../../parts/PagedTable";
import { Empty } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { dateTimeText, useViewerZone } from "../../time/zones";
import { Gates } from "./Question";
import { EMPTY_STANDING, LASTS, standingOf } from "./standingForm";

type StandingApproval = Schemas["StandingApproval"];

export function Standing() {
  const pages = usePages("/api/approvals/standing", { query: { page_size: 100 } });
  const approves = useMay("approve");
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<StandingApproval | null>(null);
  return (
    <>
      <div className="row far">
        <p className="muted">
          A standing approval approves matching requests automatically until it ends. Each use is recorded.
        </p>
        {approves ? (
          <Button kind="primary" onClick={() => setMaking(true)}>
            Create standing approval
          </Button>
        ) : null}
      </div>
      <PagedTable
        of={pages}
        rowsOf={(several) => several.flatMap((page) => page.standing)}
        region="Standing approvals"
        heads={[
          "Target",
          "Gates",
          "Until",
          { text: "Uses", number: true },
          "Created",
          "Reason",
          approves && { text: "Actions", hidden: true },
        ]}
        empty={<NoStanding />}
      >
        {(row) => <Row key={row.standing_id} row={row} onRevoke={approves ? setRevoking : null} />}
      </PagedTable>
      {making ? <Make onClose={() => setMaking(false)} /> : null}
      {revoking ? <Revoke of={revoking} onClose={() => setRevoking(null)} /> : null}
    </>
  );
}

function NoStanding() {
  return (
    <Empty title="No standing approvals">
      <p>
        Create one to approve recurring requests of a schedule or workflow automatically, limited by gates, end date and
        number of uses.
      </p>
    </Empty>
  );
}

function Row({ row, onRevoke }: { row: StandingApproval; onRevoke: ((of: StandingApproval) => void) | null }) {
  return (
    <tr data-row>
      <td>
        <Target of={row} />
      </td>
      <td>
        {row.broken ? (
          <span className="tone-bad">Unreadable; approves nothing</span>
        ) : row.gates.length > 0 ? (
          <Gates gates={row.gates} />
        ) : (
          <span className="muted">Runs of the current definition</span>
        )}
      </td>
      <td>
        {row.active ? (
          <When at={row.until} none="No end date" />
        ) : (
          <span className="tone-bad">Ended: {row.ended_reason?.replaceAll("_", " ")}</span>
        )}
      </td>
      <td className="number nowrap">{row.max_uses === null ? row.uses : `${row.uses} of ${row.max_uses}`}</td>
      <td>
        <When at={row.created_at} brief /> by <bdi>{row.made_by}</bdi>
      </td>
      <td dir="auto">{row.reason ?? "—"}</td>
      {onRevoke ? (
        <td>
          <Button small kind="danger" onClick={() => onRevoke(row)}>
            Revoke
          </Button>
        </td>
      ) : null}
    </tr>
  );
}

function Target({ of }: { of: StandingApproval }) {
  if (of.schedule_id !== null) {
    return (
      <Link to="/schedules/$scheduleId" params={{ scheduleId: of.schedule_id }}>
        <bdi>{of.schedule_id}</bdi>
      </Link>
    );
  }
  return (
    <Link to="/workflows/$workflowId" params={{ workflowId: of.workflow_id ?? "" }}>
      <bdi>{of.workflow_id}</bdi>
    </Link>
  );
}

function Make({ onClose }: { onClose: () => void }) {
  const write = useWrite("post", "/api/approvals/standing");
  const say = useSay();
  const viewer = useViewerZone();
  const [draft, setDraft] = useState(EMPTY_STANDING);
  const put = (name: keyof typeof draft) => (event: { target: { value: string } }) =>
    setDraft({ ...draft, [name]: event.target.value });
  const errors = write.error instanceof Refused ? write.error.errors : {};
  const send = () =>
    write.mutate(
      { body: standingOf(draft) },
      {
        onSuccess: ({ until }) => {
          say(`Standing approval created${until ? `, valid until ${dateTimeText(until, viewer)}` : ""}`);
          onClose();
        },
      },
    );
  return (
    <Dialog
      title="Create standing approval"
      onClose={onClose}
      failure={write.error}
      action={{ text: "Create", busy: write.isPending, disabled: draft.id.trim() === "", run: send }}
    >
      <SelectField
        label="Target"
        choices={[
          ["schedule", "Schedule"],
          ["workflow", "Workflow"],
        ]}
        value={draft.of}
        onChange={put("of")}
      />
      <TextField
        label={draft.of === "schedule" ? "Schedule ID" : "Workflow ID"}
        required
        value={draft.id}
        onChange={put("id")}
        wrong={errors[`${draft.of}_id`]}
      />
      <TextField
        label="Gates"
        value={draft.gates}
        onChange={put("gates")}
        wrong={errors["gates"]}
        placeholder="external_message, publish"
        hint="Comma-separated. Empty: approves runs of the current definition of a schedule."
      />
      <SelectField label="Duration" choices={LASTS} value={draft.lasts} onChange={put("lasts")} />
      <TextField
        label="Max uses"
        type="number"
        min={1}
        value={draft.uses}
        onChange={put("uses")}
        wrong={errors["max_uses"]}
        hint="Empty: unlimited."
      />
      <TextField
        label="Reason"
        maxLength={1_000}
        value={draft.reason}
        onChange={put("reason")}
        wrong={errors["reason"]}
      />
    </Dialog>
  );
}

function Revoke({ of, onClose }: { of: StandingApproval; onClose: () => void }) {
  const write = useWrite("delete", "/api/approvals/standing/{standing_id}");
  const say = useSay();
  const send = () =>
    write.mutate(
      { path: { standing_id: of.standing_id } },
      {
        onSuccess: () => {
          say("Standing approval revoked");
          onClose();
        },
      },
    );
  return (
    <Dialog
      title="Revoke this standing approval?"
      closeText="Cancel"
      onClose={onClose}
      failure={write.error}
      action={{ text: "Revoke", kind: "danger", busy: write.isPending, run: send }}
    >
      <p>
        Requests of <bdi>{of.schedule_id ?? of.workflow_id}</bdi> will need an approver again. Past decisions do not
        change.
      </p>
    </Dialog>
  );
}
