// A question in front of the page: the browser's own dialog, which holds the focus and closes with Escape.
import { useEffect, useId, useRef, type FormEvent, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { Button, type Kind } from "./Button";
import { FailureNote } from "./Shown";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** With these it is a form with a button that does something. */
  action?: { text: string; kind?: Kind; busy?: boolean; disabled?: boolean; run: () => void };
  failure?: Error | null;
  wide?: boolean;
  closeText?: string;
}

export function Dialog({ title, onClose, children, action, failure, wide, closeText }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Where the focus goes when it is taken away is told in parts/focus.ts.
  useEffect(() => {
    const shown = element.current;
    if (shown !== null && !shown.open) shown.showModal();
  }, []);
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!action?.busy) action?.run();
  };
  // Beside the page and not in it: what is read there is the page's, and not what somebody is about to change.
  return createPortal(
    <dialog ref={element} className={wide ? "dialog wide" : "dialog"} aria-labelledby={id} onClose={onClose}>
      <form onSubmit={send}>
        <div className="dialog-head">
          <h2 id={id}>{title}</h2>
        </div>
        <div className="dialog-body">
          {children}
          {failure ? <FailureNote failure={failure} /> : null}
        </div>
        <div className="dialog-foot">
          <Button onClick={onClose}>{closeText ?? (action ? "Cancel" : "Close")}</Button>
          {action ? (
            <Button
              type="submit"
              kind={action.kind ?? "primary"}
              busy={action.busy}
              disabled={action.disabled}
              onClick={(event) => {
                // The answer to the first press may have made another question of it: a double click asks the first.
                if (event.detail > 1) event.preventDefault();
              }}
              onKeyDown={(event) => {
                if (event.repeat) event.preventDefault(); // and so does a key that is held
              }}
            >
              {action.text}
            </Button>
          ) : null}
        </div>
      </form>
    </dialog>,
    document.body,
  );
}
