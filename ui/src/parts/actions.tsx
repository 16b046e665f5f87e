// The dialogs of the actions on one schedule: pause, resume, trigger, delete.
import { useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { useWrite } from "../api/hooks";
import { useMay } from "../api/session";
import { reasonText } from "../marks/outcomes";
import { dateTimeText, useViewerZone } from "../time/zones";
import { deleted, OVERLAP_CHOICES_OF_ACTION, resumed } from "../words";
import { Dialog } from "./Dialog";
import { CheckField, SelectField, TextArea } from "./Field";
import { isolated } from "./isolated";
import { useSay } from "./Toasts";
import { PauseFields, ReasonField, useWish, type Form } from "./WishFields";
import { asksToConfirm, freshKey, endOf, inputsOf, type ActionName } from "./wishes";

export { ManyDialog } from "./ManyDialog";
export { ACTIONS, type ActionName } from "./wishes";

/** The schedule of the action. */
export interface One {
  scheduleId: string;
  name?: string | null;
  /** Its status is `paused`: a trigger needs `even_if_paused`. */
  paused?: boolean;
  zone?: string | null;
}

interface Props {
  on: One;
  onClose: () => void;
  /** Called after success, before the dialog closes. */
  onDone?: () => void;
}

export type OneAction = Exclude<ActionName, "label">;

export function ActionDialog({ action, ...props }: Props & { action: OneAction }) {
  switch (action) {
    case "pause":
      return <PauseDialog {...props} />;
    case "resume":
      return <ResumeDialog {...props} />;
    case "trigger":
      return <TriggerDialog {...props} />;
    case "delete":
      return <DeleteDialog {...props} />;
  }
}

const REASON_HINT = "Recorded in the history. Optional.";

function nameOf({ name, scheduleId }: One): string {
  return isolated(name || scheduleId);
}

function useEnd({ onClose, onDone }: Props): (text: string) => void {
  const say = useSay();
  return (text) => {
    say(text);
    onDone?.();
    onClose();
  };
}

function PauseDialog(props: Props) {
  const { on, onClose } = props;
  const form = useWish();
  const viewer = useViewerZone();
  const end = useEnd(props);
  const pause = useWrite("post", "/api/schedules/{schedule_id}/pause");
  const confirm = asksToConfirm(pause.error);
  const run = () => {
    const { body, wrong } = endOf(form.wish, viewer);
    if (wrong) return form.setWrong(wrong);
    const until = (at: string | null) => (at ? ` until ${dateTimeText(at, viewer)}` : "");
    pause.mutate(
      { path: { schedule_id: on.scheduleId }, query: { confirm }, body: { reason: form.wish.reason || null, ...body } },
      { onSuccess: ({ paused_until: at }) => end(`${nameOf(on)} paused${until(at ?? null)}`) },
    );
  };
  return (
    <Dialog
      title={`Pause ${nameOf(on)}`}
      onClose={onClose}
      failure={pause.error}
      action={{ text: confirm ? "Pause, then start all" : "Pause", busy: pause.isPending, run }}
    >
      <p className="muted">The schedule does not fire while paused. Active runs continue.</p>
      <PauseFields form={form} zone={on.zone} reasonHint={REASON_HINT} />
    </Dialog>
  );
}

function ResumeDialog(props: Props) {
  const { on, onClose } = props;
  const form = useWish();
  const end = useEnd(props);
  const resume = useWrite("post", "/api/schedules/{schedule_id}/resume");
  const confirm = asksToConfirm(resume.error);
  const run = () =>
    resume.mutate(
      { path: { schedule_id: on.scheduleId }, query: { confirm }, body: { reason: form.wish.reason || null } },
      { onSuccess: () => end(resumed(nameOf(on))) },
    );
  const text = confirm ? "Start all" : "Resume";
  return (
    <Dialog
      title={`Resume ${nameOf(on)}`}
      onClose={onClose}
      failure={resume.error}
      action={{ text, busy: resume.isPending, run }}
    >
      <p className="muted">Occurrences missed while paused do not run. Buffered runs start.</p>
      <ReasonField form={form} hint={REASON_HINT} />
    </Dialog>
  );
}

function TriggerDialog(props: Props) {
  const { on, onClose } = props;
  const form = useWish();
  const end = useEnd(props);
  // One idempotency key per trigger: a double click or a retry after a lost response triggers once.
  const [key, setKey] = useState(freshKey);
  const trigger = useWrite("post", "/api/schedules/{schedule_id}/trigger");
  const answer = trigger.data;
  const run = () => {
    const { wish } = form;
    const { body: inputs, wrong } = inputsOf(wish.inputs);
    if (wrong) return form.setWrong(wrong);
    const body = {
      inputs,
      reason: wish.reason || null,
      overlap_policy: (wish.overlap || null) as Schemas["OverlapPolicy"] | null,
      even_if_paused: wish.evenIfPaused,
      idempotency_key: key,
    };
    trigger.mutate(
      { path: { schedule_id: on.scheduleId }, body },
      {
        onSuccess: (said) => {
          if (startedText(said) !== null) end(`${nameOf(on)} ${startedText(said)}`);
          else setKey(freshKey()); // nothing was triggered, so the next attempt is a new one
        },
      },
    );
  };
  return (
    <Dialog
      title={`Trigger ${nameOf(on)}`}
      onClose={onClose}
      failure={trigger.error}
      action={{ text: "Trigger", busy: trigger.isPending, run }}
    >
      <p className="muted">Fires once, now. Scheduled times do not change.</p>
      <TriggerFields form={form} on={on} />
      {answer && startedText(answer) === null ? <NotStarted answer={answer} /> : null}
    </Dialog>
  );
}

function TriggerFields({ form, on }: { form: Form; on: One }) {
  const mayWrite = useMay("write");
  return (
    <>
      {mayWrite ? (
        <TextArea
          label="Inputs (JSON)"
          hint="Replace the inputs of the schedule for this run. Optional."
          className="mono"
          rows={4}
          spellCheck={false}
          value={form.wish.inputs}
          wrong={form.wrong.inputs}
          onChange={(event) => form.set({ inputs: event.target.value })}
        />
      ) : null}
      <SelectField
        label="If a run is active"
        choices={OVERLAP_CHOICES_OF_ACTION}
        value={form.wish.overlap}
        onChange={(event) => form.set({ overlap: event.target.value })}
      />
      <ReasonField form={form} />
      {on.paused ? (
        <CheckField
          label="Run even if paused"
          checked={form.wish.evenIfPaused}
          onChange={(event) => form.set({ evenIfPaused: event.target.checked })}
        />
      ) : null}
    </>
  );
}

/** The text after success; null = no run was created. */
function startedText({ outcome, state }: Schemas["Triggered"]): string | null {
  if (outcome === "buffered") return "triggered; the run is buffered until earlier runs end";
  if (outcome !== "triggered") return null;
  return state === "awaiting_approval" ? "triggered; awaiting approval" : "triggered";
}

function NotStarted({ answer }: { answer: Schemas["Triggered"] }) {
  const detail = useMemo(() => (typeof answer.detail === "string" ? answer.detail : null), [answer.detail]);
  return (
    <div className="note tone-warn" role="alert">
      No run started: {detail ?? reasonText(answer.reason) ?? answer.outcome.replaceAll("_", " ")}
    </div>
  );
}

function DeleteDialog(props: Props) {
  const { on, onClose } = props;
  const end = useEnd(props);
  const remove = useWrite("delete", "/api/schedules/{schedule_id}");
  const run = () =>
    remove.mutate({ path: { schedule_id: on.scheduleId } }, { onSuccess: () => end(deleted(nameOf(on))) });
  return (
    <Dialog
      title={`Delete ${nameOf(on)}?`}
      onClose={onClose}
      failure={remove.error}
      action={{ text: "Delete", kind: "danger", busy: remove.isPending, run }}
    >
      <p>The schedule never fires again. Runs that have not started are cancelled. The history is kept.</p>
    </Dialog>
  );
}
