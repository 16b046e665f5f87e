// Rerun an ended run: the same occurrence and definition, with the same or changed inputs.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { reasonText } from "../../marks/outcomes";
import { Dialog } from "../../parts/Dialog";
import { CheckField, SelectField, TextField } from "../../parts/Field";
import { jsonText } from "../../parts/Json";
import { JsonField } from "../../parts/JsonField";
import { parseJson } from "../../parts/jsonInput";
import { useSay } from "../../parts/Toasts";
import { inSentence, OVERLAP_CHOICES_OF_ACTION, RERUN } from "../../words";

export function Rerun({ run, onClose }: { run: Schemas["Run"]; onClose: () => void }) {
  const write = useWrite("post", "/api/runs/{run_id}/rerun");
  const mayWrite = useMay("write");
  const navigate = useNavigate();
  const say = useSay();
  const [reason, setReason] = useState("");
  const [overlap, setOverlap] = useState("");
  const [evenIfPaused, setEvenIfPaused] = useState(false);
  const [text, setText] = useState<string | null>(null);
  const read = text === null ? null : parseJson(text);
  const refused = write.data && !write.data.run_id ? (reasonText(write.data.reason) ?? write.data.outcome) : null;
  const send = () =>
    write.mutate(
      {
        path: { run_id: run.run_id },
        body: {
          reason: reason.trim() || undefined,
          overlap_policy: (overlap || undefined) as Schemas["OverlapPolicy"] | undefined,
          even_if_paused: evenIfPaused || undefined,
          inputs: read?.ok ? read.value : undefined,
        },
      },
      {
        onSuccess: (made) => {
          if (!made.run_id) return;
          say(made.outcome === "buffered" ? "Rerun buffered until active runs end" : "Rerun started");
          onClose();
          void navigate({ to: "/runs/$runId", params: { runId: made.run_id } });
        },
      },
    );
  return (
    <Dialog
      title="Rerun"
      wide={text !== null}
      onClose={onClose}
      failure={write.error}
      action={{ text: RERUN, busy: write.isPending, disabled: read !== null && !read.ok, run: send }}
    >
      <p className="muted">
        Create a new run of the same occurrence with the same definition. Limits, overlap policy and approvals apply.
      </p>
      <TextField
        label="Reason"
        value={reason}
        maxLength={1_000}
        placeholder="Optional; shown in the history"
        onChange={(event) => setReason(event.target.value)}
      />
      <SelectField
        label="If a run is active"
        choices={OVERLAP_CHOICES_OF_ACTION}
        value={overlap}
        onChange={(event) => setOverlap(event.target.value)}
      />
      <CheckField
        label="Run even if paused"
        checked={evenIfPaused}
        onChange={(event) => setEvenIfPaused(event.target.checked)}
      />
      {mayWrite ? (
        <CheckField
          label="Change inputs"
          checked={text !== null}
          onChange={(event) => setText(event.target.checked ? jsonText(run.inputs ?? {}) : null)}
        />
      ) : null}
      {text === null ? null : <JsonField label="Inputs" text={text} onText={setText} />}
      {refused ? (
        <div className="note tone-warn" role="alert">
          Not started: {inSentence(refused)}.
        </div>
      ) : null}
    </Dialog>
  );
}
