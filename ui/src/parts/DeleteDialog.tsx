// The confirmation dialog of a deletion.
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";
import { useSay } from "./Toasts";
import { deleted } from "../words";

/** The mutation that deletes the object. */
interface Removal<Given> {
  mutate: (given: Given, then: { onSuccess: () => void }) => void;
  error: Error | null;
  isPending: boolean;
}

interface Props<Given> {
  name: string;
  remove: Removal<Given>;
  given: NoInfer<Given>;
  /** Called after the deletion, to leave the page of the object. */
  onGone: () => void;
  onClose: () => void;
  /** Set while a required input is missing. */
  disabled?: boolean;
  /** The button text; default "Delete". */
  text?: string;
  children: ReactNode;
}

export function DeleteDialog<Given>({
  name,
  remove,
  given,
  onGone,
  onClose,
  disabled,
  text = "Delete",
  children,
}: Props<Given>) {
  const say = useSay();
  const run = () =>
    remove.mutate(given, {
      onSuccess: () => {
        say(deleted(name));
        onGone();
      },
    });
  return (
    <Dialog
      title={`Delete ${name}?`}
      onClose={onClose}
      failure={remove.error}
      action={{ text, kind: "danger", run, busy: remove.isPending, disabled }}
    >
      {children}
    </Dialog>
  );
}
