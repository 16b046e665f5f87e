// What can be done with one schedule, each asked in a dialog: pause, resume, trigger, delete.
import { useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { useWrite } from "../api/hooks";
import { useMay } from "../api/session";
import { reasonText } from "../marks/outcomes";
import { dateTimeText, useViewerZone } from "../time/zones";
import { Dialog } from "./Dialog";
import { CheckField, SelectField, TextArea } from "./Field";
import { isolated } from "./isolated";
import { useSay } from "./Toasts";
import { PauseFields, ReasonField, useWish, type Form } from "./WishFields";
import { asksToConfirm, freshKey, endOf, inputsOf, type ActionName } from "./wishes";

export { ManyDialog } from "./ManyDialog";
export { ACTIONS, type ActionName } from "./wishes";

/** The schedule that it is done to. */
export interface One {
  scheduleId: string;
  name?: string | null;
  /** Its status is `paused`: a trigger must say that it is meant all the same. */
  paused?: boolean;
  zone?: string | null;
}

interface Props {
  on: One;
  onClose: () => void;
  /** After it was done, before the dialog closes. */
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
      { onSuccess: ({ paused_until: at }) => end(`${nameOf(on)} is paused${until(at ?? null)}.`) },
    );
  };
  return (
    <Dialog
      title={`Pause ${nameOf(on)}`}
      onClose={onClose}
      failure={pause.error}
      action={{ text: confirm ? "Pause, then start them all" : "Pause", busy: pause.isPending, run }}
    >
      <p className="muted">Nothing fires while it is paused. What runs already goes on.</p>
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
      { onSuccess: () => end(`${nameOf(on)} goes on.`) },
    );
  const text = confirm ? "Start them all" : "Resume";
  return (
    <Dialog
      title={`Resume ${nameOf(on)}`}
      onClose={onClose}
      failure={resume.error}
      action={{ text, busy: resume.isPending, run }}
    >
      <p className="muted">
        It goes on from now: what fell into the pause is not made up for. Runs that it holds are let go.
      </p>
      <ReasonField form={form} hint={REASON_HINT} />
    </Dialog>
  );
}

const OVERLAPS: readonly (readonly [Schemas["OverlapPolicy"] | "", string])[] = [
  ["", "as the schedule says"],
  ["skip", "do not start it"],
  ["buffer_one", "hold it, one at most"],
  ["buffer_all", "hold it until they have ended"],
  ["allow_all", "start it beside them"],
  ["cancel_other", "cancel them and start it"],
  ["terminate_other", "terminate them and start it"],
];

function TriggerDialog(props: Props) {
  const { on, onClose } = props;
  const form = useWish();
  const end = useEnd(props);
  // Asked twice with one key, it is triggered once: a double click, or a second try after a lost answer.
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
          if (startedText(said) !== null) end(`${nameOf(on)} ${startedText(said)}.`);
          else setKey(freshKey()); // it did nothing, so the next try is another one
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
      <p className="muted">Fires once, now. Its times do not change.</p>
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
          label="Inputs, as JSON"
          hint="Taken in place of those of the schedule, for this run alone. May be left out."
          className="mono"
          rows={4}
          spellCheck={false}
          value={form.wish.inputs}
          wrong={form.wrong.inputs}
          onChange={(event) => form.set({ inputs: event.target.value })}
        />
      ) : null}
      <SelectField
        label="Where runs of it have not ended"
        choices={OVERLAPS}
        value={form.wish.overlap}
        onChange={(event) => form.set({ overlap: event.target.value })}
      />
      <ReasonField form={form} />
      {on.paused ? (
        <CheckField
          label="although it is paused"
          checked={form.wish.evenIfPaused}
          onChange={(event) => form.set({ evenIfPaused: event.target.checked })}
        />
      ) : null}
    </>
  );
}

/** null = no run came of it. */
function startedText({ outcome, state }: Schemas["Triggered"]): string | null {
  if (outcome === "buffered") return "is held until the runs before it have ended";
  if (outcome !== "triggered") return null;
  return state === "awaiting_approval" ? "was triggered, and waits for a yes" : "was triggered";
}

function NotStarted({ answer }: { answer: Schemas["Triggered"] }) {
  const detail = useMemo(() => (typeof answer.detail === "string" ? answer.detail : null), [answer.detail]);
  return (
    <div className="note tone-warn" role="alert">
      Nothing was started: {detail ?? reasonText(answer.reason) ?? answer.outcome.replaceAll("_", " ")}.
    </div>
  );
}

function DeleteDialog(props: Props) {
  const { on, onClose } = props;
  const end = useEnd(props);
  const remove = useWrite("delete", "/api/schedules/{schedule_id}");
  const run = () =>
    remove.mutate({ path: { schedule_id: on.scheduleId } }, { onSuccess: () => end(`${nameOf(on)} is deleted.`) });
  return (
    <Dialog
      title={`Delete ${nameOf(on)}?`}
      onClose={onClose}
      failure={remove.error}
      action={{ text: "Delete", kind: "danger", busy: remove.isPending, run }}
    >
      <p>It never fires again, and what has not started is cancelled. Its history stays readable.</p>
    </Dialog>
  );
}
