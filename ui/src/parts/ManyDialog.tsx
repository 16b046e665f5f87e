// One action on many schedules: a preview with the count, the fields of the action, then its progress.
import { useState } from "react";
import { useNamespace } from "../api/session";
import { useViewerZone } from "../time/zones";
import { countedOf, manyText, schedulesText, type Many } from "./bulk";
import { useCountField } from "./CountField";
import { Dialog } from "./Dialog";
import { JobProgress, useDialogJob } from "./JobProgress";
import "./many.css";
import { FailureNote, Loading } from "./Shown";
import { schedulePages, useBulkPreview, type BulkWish, type Preview } from "./useBulk";
import { LabelFields, PauseFields, ReasonField, useWish, type Form } from "./WishFields";
import { ACTIONS, asksToConfirm, endOf, freshKey, labelsOf, type ActionName, type Made } from "./wishes";

interface Props {
  action: ActionName;
  many: Many;
  /** `started`: the action has begun, and continues if it has not ended. */
  onClose: (started: boolean) => void;
}

const ABOUT: Readonly<Record<ActionName, string>> = {
  pause: "Paused schedules do not fire. Active runs continue.",
  resume: "Occurrences missed while paused do not run. Buffered runs start.",
  trigger: "Each schedule fires once, now. Paused schedules are skipped.",
  label: "Each schedule gets a new revision. Its timing does not change.",
  delete: "Deleted schedules never fire again. Runs that have not started are cancelled. The history is kept.",
};

export function ManyDialog({ action, many, onClose }: Props) {
  const form = useWish();
  const viewer = useViewerZone();
  const namespace = useNamespace();
  const [key] = useState(freshKey);
  const preview = useBulkPreview(many, action);
  const count = preview.data?.count ?? 0;
  const typed = useCountField(action === "delete" ? count : 0);
  const { job, refusal, start } = useDialogJob();
  const { text, kind } = ACTIONS[action];
  const confirm = asksToConfirm(refusal);
  const title = buttonText(text, preview.data);
  const run = () => {
    const { body, wrong } = wishOf(action, form, viewer);
    if (wrong) return form.setWrong(wrong);
    const chosen = action === "delete" ? countedOf(many, preview.data) : many;
    const total = preview.data?.atLeast ? null : count;
    const nextPage = schedulePages(chosen, namespace, body, key);
    start({ title, kind: "schedule", namespace, total, nextPage }, confirm);
  };
  if (job) {
    return (
      <Dialog title={job.title} onClose={() => onClose(true)}>
        <JobProgress job={job} />
      </Dialog>
    );
  }
  return (
    <Dialog
      title={`${text} ${manyText(many)}`}
      onClose={() => onClose(false)}
      failure={refusal}
      action={{
        text: confirm ? "Start all" : title,
        kind,
        disabled: count === 0 || !typed.matches,
        run,
      }}
    >
      <p className="muted">{ABOUT[action]}</p>
      {preview.data ? (
        <Which preview={preview.data} />
      ) : preview.error ? (
        <FailureNote failure={preview.error} again={() => void preview.refetch()} />
      ) : (
        <Loading text="Counting…" />
      )}
      <Fields action={action} form={form} />
      {typed.field}
    </Dialog>
  );
}

function Fields({ action, form }: { action: ActionName; form: Form }) {
  if (action === "pause") return <PauseFields form={form} />;
  if (action === "label") return <LabelFields form={form} />;
  return <ReasonField form={form} />;
}

function wishOf(action: ActionName, form: Form, zone: string): Made<BulkWish> {
  const wish: BulkWish = { action, reason: form.wish.reason || null };
  if (action === "pause") {
    const { body: end, wrong } = endOf(form.wish, zone);
    return wrong ? { body: null, wrong } : { body: { ...wish, ...end }, wrong: null };
  }
  if (action === "label") {
    const { body: labels, wrong } = labelsOf(form.wish);
    return wrong ? { body: null, wrong } : { body: { ...wish, labels }, wrong: null };
  }
  return { body: wish, wrong: null };
}

function buttonText(text: string, preview: Preview | undefined): string {
  if (preview === undefined || preview.count === 0) return text;
  return `${text} ${preview.atLeast ? "all matching schedules" : schedulesText(preview.count)}`;
}

const MOST_FIRST = 8;

function Which({ preview: { count, atLeast, ids } }: { preview: Preview }) {
  if (count === 0) return <p>No schedule matches.</p>;
  const first = ids.slice(0, MOST_FIRST);
  return (
    <div className="stack">
      <p>
        <strong>
          {atLeast ? "At least " : ""}
          {schedulesText(count)}
        </strong>
        {count > first.length ? ", including:" : ":"}
      </p>
      <ul className="many-first">
        {first.map((id) => (
          <li key={id} className="cut mono" title={id}>
            <bdi>{id}</bdi>
          </li>
        ))}
      </ul>
    </div>
  );
}
