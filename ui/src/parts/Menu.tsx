// A button that opens a menu: the browser's own popover, which Escape or a click elsewhere closes.
import { useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { Button, type Kind } from "./Button";

export interface MenuItem {
  id: string;
  text: string;
  run: () => void;
}

interface Props {
  label: string;
  text: ReactNode;
  kind?: Kind;
  items: readonly MenuItem[];
}

/** The items are rendered only while it is open, as a long list has one menu per row. */
export function Menu({ label, text, kind = "plain", items }: Props) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false); // a press outside of the popover closes it, also one on this button
  const click = () => {
    setOpen(!wasOpen.current);
    wasOpen.current = false;
  };
  return (
    <>
      <Button
        ref={button}
        small
        kind={kind}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        onPointerDown={() => (wasOpen.current = open)}
        onClick={click}
      >
        {text}
      </Button>
      {open ? <Items label={label} items={items} button={button} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

interface Opened {
  label: string;
  items: readonly MenuItem[];
  button: React.RefObject<HTMLButtonElement | null>;
  onClose: () => void;
}

function Items({ label, items, button, onClose }: Opened) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const shown = list.current!;
    const place = button.current!.getBoundingClientRect();
    shown.showPopover();
    const below = place.bottom + 4 + shown.offsetHeight <= window.innerHeight;
    shown.style.position = "fixed";
    shown.style.top = `${Math.max(8, below ? place.bottom + 4 : place.top - 4 - shown.offsetHeight)}px`;
    shown.style.left = `${Math.max(8, Math.min(place.left, window.innerWidth - shown.offsetWidth - 8))}px`;
    shown.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [button]);
  const close = () => {
    button.current?.focus();
    onClose();
  };
  const key = (event: KeyboardEvent) => {
    const all = [...list.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Tab") close();
    if (next === undefined) return;
    event.preventDefault();
    all[(next + all.length) % all.length]?.focus();
  };
  return (
    <div
      ref={list}
      popover="auto"
      role="menu"
      aria-label={label}
      className="menu"
      onKeyDown={key}
      onToggle={(event) => {
        if (event.newState === "closed") onClose();
      }}
    >
      {items.map(({ id, text, run }) => (
        <button
          key={id}
          type="button"
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            close();
            run();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
