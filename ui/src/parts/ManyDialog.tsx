// One thing done to many schedules: first how many and which, then page by page, and those that were refused with why.
import { useState } from "react";
import { reasonText } from "../marks/outcomes";
import { useViewerZone } from "../time/zones";
import { countedOf, manyText, schedulesText, tallyText, type Many, type Tally } from "./bulk";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { FailureNote, Loading } from "./Shown";
import { When } from "./When";
import { useBulk, useBulkPreview, type BulkWish, type Preview } from "./useBulk";
import { LabelFields, PauseFields, ReasonField, useWish, type Form } from "./WishFields";
import "./many.css";
import { ACTIONS, asksToConfirm, freshKey, labelsOf, endOf, type ActionName, type Made } from "./wishes";

interface Props {
  action: ActionName;
  many: Many;
  onClose: () => void;
  /** When it has gone through to the end. */
  onDone?: () => void;
}

const ABOUT: Readonly<Record<ActionName, string>> = {
  pause: "Nothing fires while they are paused. What runs already goes on.",
  resume: "They go on from now: what fell into the pause is not made up for.",
  trigger: "Each fires once, now. Those that are paused are left alone.",
  label: "Each gets a new revision; when it fires does not change.",
  delete: "They never fire again, and what has not started is cancelled. Their history stays readable.",
};

export function ManyDialog({ action, many, onClose, onDone }: Props) {
  const form = useWish();
  const viewer = useViewerZone();
  const [key] = useState(freshKey);
  const preview = useBulkPreview(many, action);
  const bulk = useBulk(action === "delete" ? countedOf(many, preview.data) : many);
  const { text, kind } = ACTIONS[action];
  const begun = bulk.phase !== "asking" && !(bulk.phase === "failed" && bulk.tally.total === 0);
  const [meant, setMeant] = useState(false);
  const confirm = asksToConfirm(bulk.failure);
  const run = () => {
    const { body, wrong } = wishOf(action, form, viewer);
    if (wrong) form.setWrong(wrong);
    else void bulk.go(body, key, meant || confirm);
    setMeant(meant || confirm);
  };
  const count = preview.data?.count ?? 0;
  const isOver = bulk.phase === "done";
  return (
    <Dialog
      title={`${text} ${manyText(many)}`}
      onClose={() => {
        bulk.halt();
        if (isOver) onDone?.();
        onClose();
      }}
      failure={bulk.failure}
      closeText={begun ? "Close" : undefined}
      action={
        bulk.phase === "asking" || bulk.phase === "failed" || bulk.phase === "stopped"
          ? {
              text: confirm ? "Yes, start them all" : begun ? "Go on" : buttonText(text, preview.data),
              kind,
              disabled: count === 0,
              run,
            }
          : undefined
      }
    >
      {begun ? (
        <Progress tally={bulk.tally} phase={bulk.phase} until={bulk.until} preview={preview.data} onStop={bulk.halt} />
      ) : (
        <>
          <p className="muted">{ABOUT[action]}</p>
          {preview.data ? (
            <Which preview={preview.data} />
          ) : preview.error ? (
            <FailureNote failure={preview.error} again={() => void preview.refetch()} />
          ) : (
            <Loading text="Counting…" />
          )}
          <Fields action={action} form={form} />
        </>
      )}
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
  return `${text} ${preview.atLeast ? "all of them" : schedulesText(preview.count)}`;
}

const MOST_FIRST = 8;

function Which({ preview: { count, atLeast, ids } }: { preview: Preview }) {
  if (count === 0) return <p>There is none that fits.</p>;
  const first = ids.slice(0, MOST_FIRST);
  return (
    <div className="stack">
      <p>
        <strong>
          {atLeast ? "At least " : ""}
          {schedulesText(count)}
        </strong>
        {count > first.length ? ", the first of them:" : ":"}
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

function Progress({
  tally,
  phase,
  until,
  preview,
  onStop,
}: {
  tally: Tally;
  phase: string;
  until: string | null;
  preview?: Preview;
  onStop: () => void;
}) {
  const total = preview && !preview.atLeast ? Math.max(preview.count, tally.total) : null;
  const over = phase === "done";
  return (
    <div className="stack">
      <div className="row far">
        <strong role="status">
          {over ? "Done: " : phase === "stopped" ? "Stopped: " : ""}
          {tallyText(tally)}
        </strong>
        {phase === "working" || phase === "stopping" ? (
          <Button small disabled={phase === "stopping"} onClick={onStop}>
            {phase === "stopping" ? "Stopping…" : "Stop"}
          </Button>
        ) : null}
      </div>
      <progress
        className="many-progress"
        aria-label="How far it is"
        max={total ?? undefined}
        value={over ? (total ?? undefined) : total ? tally.total : undefined}
        hidden={over && total === null}
      />
      {total ? (
        <span className="muted small">
          {tally.total.toLocaleString("en")} of {total.toLocaleString("en")}
        </span>
      ) : null}
      {until ? (
        <p className="muted">
          They go on by themselves: <When at={until} />
        </p>
      ) : null}
      {tally.refused.length > 0 ? <RefusedOnes tally={tally} /> : null}
    </div>
  );
}

function RefusedOnes({ tally }: { tally: Tally }) {
  return (
    <div className="table-frame many-refused" tabIndex={0} role="group" aria-label="Those to which it was not done">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Not done</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {tally.refused.map((each) => (
            <tr key={each.schedule_id}>
              <td className="mono">
                <bdi>{each.schedule_id}</bdi>
              </td>
              <td>{each.message ?? reasonText(each.reason) ?? each.outcome.replaceAll("_", " ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
