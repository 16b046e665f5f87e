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

/** While it is busy it keeps the focus, which a button that is disabled loses, and does nothing. */
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

/** Also as the submit of a form. */
function ignored(event: MouseEvent): void {
  event.preventDefault();
}
