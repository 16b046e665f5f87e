// The fields of actions on schedules: end of a pause, reason, labels.
import { useState } from "react";
import { Refused } from "../api/client";
import { useViewerZone } from "../time/zones";
import { SelectField, TextArea, TextField } from "./Field";
import { When } from "./When";
import { useUnderstood } from "./useBulk";
import { endOf, NO_WISH, PAUSES, type Wish, type Wrong } from "./wishes";

export interface Form {
  wish: Wish;
  wrong: Wrong;
  set: (part: Partial<Wish>) => void;
  setWrong: (wrong: Wrong) => void;
}

/** The state of the form. A change clears the errors. */
export function useWish(): Form {
  const [wish, setWish] = useState<Wish>(NO_WISH);
  const [wrong, setWrong] = useState<Wrong>({});
  return {
    wish,
    wrong,
    setWrong,
    set: (part) => {
      setWish((now) => ({ ...now, ...part }));
      setWrong({});
    },
  };
}

export function ReasonField({ form, label = "Reason", hint }: { form: Form; label?: string; hint?: string }) {
  return (
    <TextField
      label={label}
      hint={hint ?? "Recorded with the action. Optional."}
      maxLength={1000}
      value={form.wish.reason}
      wrong={form.wrong.reason}
      onChange={(event) => form.set({ reason: event.target.value })}
    />
  );
}

/** A date and time in the viewer's zone; the service computes the instant. */
export function PauseFields({ form, zone, reasonHint }: { form: Form; zone?: string | null; reasonHint?: string }) {
  const viewer = useViewerZone();
  const { data: until, error } = useUnderstood(endOf(form.wish, viewer).body);
  const isWritten = form.wish.lasting === "at";
  const hint = until ? <When at={until} zone={zone} /> : null;
  const refused = error instanceof Refused ? (error.errors["until"] ?? error.errors["timezone"]) : undefined;
  return (
    <>
      <SelectField
        label="Duration"
        choices={PAUSES}
        hint={isWritten ? null : hint}
        value={form.wish.lasting}
        onChange={(event) => form.set({ lasting: event.target.value })}
      />
      {isWritten ? (
        <TextField
          label={`End (${viewer})`}
          type="datetime-local"
          value={form.wish.at}
          wrong={form.wrong.at ?? refused}
          hint={hint ?? "The schedule resumes at this time."}
          onChange={(event) => form.set({ at: event.target.value })}
        />
      ) : null}
      <ReasonField form={form} hint={reasonHint} />
    </>
  );
}

export function LabelFields({ form }: { form: Form }) {
  return (
    <>
      <TextArea
        label="Labels to set"
        hint="One per line, such as team=data. Existing labels are overwritten."
        className="mono"
        rows={3}
        value={form.wish.set}
        wrong={form.wrong.set}
        onChange={(event) => form.set({ set: event.target.value })}
      />
      <TextField
        label="Labels to remove"
        hint="Comma-separated names."
        className="mono"
        value={form.wish.off}
        wrong={form.wrong.off}
        onChange={(event) => form.set({ off: event.target.value })}
      />
    </>
  );
}
