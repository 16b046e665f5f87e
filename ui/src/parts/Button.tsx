// A button, and a link that looks like one.
import type { ComponentProps, MouseEvent } from "react";

export type Kind = "plain" | "primary" | "danger" | "quiet";

interface Looks {
  kind?: Kind;
  small?: boolean;
  pressed?: boolean;
}

export function buttonClass({ kind = "plain", small = false, pressed = false }: Looks): string {
  return ["button", kind === "plain" ? "" : kind, small ? "small" : "", pressed ? "pressed" : ""]
    .filter(Boolean)
    .join(" ");
}

/** A busy button ignores clicks but keeps the focus, which a disabled button would lose. */
export function Button({
  kind,
  small,
  pressed,
  busy,
  children,
  ...rest
}: ComponentProps<"button"> & Looks & { busy?: boolean }) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      {...rest}
      {...(busy ? { "aria-disabled": true, onClick: ignored } : {})}
      className={`${buttonClass({ kind, small, pressed })} ${rest.className ?? ""}`}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : null}
      {children}
    </button>
  );
}

/** Ignore a click, also of a submit button. */
function ignored(event: MouseEvent): void {
  event.preventDefault();
}
