// Does an ended run once more: the same occurrence and definition, with the same inputs or others.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { reasonText } from "../../marks/outcomes";
import { Dialog } from "../../parts/Dialog";
import { CheckField, SelectField, TextField, type Choice } from "../../parts/Field";
import { jsonText } from "../../parts/Json";
import { JsonField } from "../../parts/JsonField";
import { parseJson } from "../../parts/jsonInput";
import { useSay } from "../../parts/Toasts";

const OVERLAPS: readonly Choice[] = [
  ["", "what the schedule says"],
  ["skip", "skip it"],
  ["buffer_one", "hold it, if nothing is held yet"],
  ["buffer_all", "hold it"],
  ["allow_all", "run beside the others"],
  ["cancel_other", "ask the others to stop, then run"],
  ["terminate_other", "end the others, and run"],
];

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
        } as never,
      },
      {
        onSuccess: (made) => {
          if (!made.run_id) return;
          say(made.outcome === "buffered" ? "It is held until the others have ended." : "It was started once more.");
          onClose();
          void navigate({ to: "/runs/$runId", params: { runId: made.run_id } });
        },
      },
    );
  return (
    <Dialog
      title="Run again"
      wide={text !== null}
      onClose={onClose}
      failure={write.error}
      action={{ text: "Run again", busy: write.isPending, disabled: read !== null && !read.ok, run: send }}
    >
      <p className="muted">
        A new run of the same occurrence, with the definition that this one had. Limits, overlap and approval are asked
        anew.
      </p>
      <TextField
        label="Reason"
        value={reason}
        maxLength={1_000}
        placeholder="for the history; optional"
        onChange={(event) => setReason(event.target.value)}
      />
      <SelectField
        label="If the schedule is busy"
        choices={OVERLAPS}
        value={overlap}
        onChange={(event) => setOverlap(event.target.value)}
      />
      <CheckField
        label="also while the schedule is paused"
        checked={evenIfPaused}
        onChange={(event) => setEvenIfPaused(event.target.checked)}
      />
      {mayWrite ? (
        <CheckField
          label="with other inputs"
          checked={text !== null}
          onChange={(event) => setText(event.target.checked ? jsonText(run.inputs ?? {}) : null)}
        />
      ) : null}
      {text === null ? null : <JsonField label="Inputs" text={text} onText={setText} />}
      {refused ? (
        <div className="note tone-warn" role="alert">
          It was not started: {refused}.
        </div>
      ) : null}
    </Dialog>
  );
}
