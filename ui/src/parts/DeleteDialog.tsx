// The question before something is deleted: what becomes of what depends on it, and the button that does it.
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";
import { useSay } from "./Toasts";

/** The write of the thing's own route, which says what it must be given. */
interface Removal<Given> {
  mutate: (given: Given, then: { onSuccess: () => void }) => void;
  error: Error | null;
  isPending: boolean;
}

interface Props<Given> {
  name: string;
  remove: Removal<Given>;
  given: NoInfer<Given>;
  /** Away from what is not there any more. */
  onGone: () => void;
  onClose: () => void;
  /** Something is missing, such as the number of objects. */
  disabled?: boolean;
  /** "Delete" unless more goes than the one object. */
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
        say(`${name} is deleted`);
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
