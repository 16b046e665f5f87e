// A modal dialog: the browser's own element, which traps the focus and closes with Escape.
import { useEffect, useId, useRef, type FormEvent, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { Button, type Kind } from "./Button";
import { FailureNote } from "./Shown";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The submit button; without it the dialog only shows content. */
  action?: { text: string; kind?: Kind; busy?: boolean; disabled?: boolean; run: () => void };
  failure?: Error | null;
  wide?: boolean;
  closeText?: string;
}

export function Dialog({ title, onClose, children, action, failure, wide, closeText }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // parts/focus.ts returns the focus when the dialog closes.
  useEffect(() => {
    const shown = element.current;
    if (shown !== null && !shown.open) shown.showModal();
  }, []);
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!action?.busy) action?.run();
  };
  // A portal outside the page, so that screen readers do not read the dialog as page content.
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
                // The first press may change the action of the button, so a double click counts once.
                if (event.detail > 1) event.preventDefault();
              }}
              onKeyDown={(event) => {
                if (event.repeat) event.preventDefault(); // the same for a repeated key
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
