// A text that explains a mark on hover and on keyboard focus.
import { useId, useState, type ReactNode } from "react";
import { createPortal } from "react-dom";

export function Tooltip({
  text,
  children,
  focusable = true,
}: {
  text: string;
  children: ReactNode;
  focusable?: boolean;
}) {
  const [place, setPlace] = useState<{ x: number; y: number } | null>(null);
  const id = useId();
  const show = (target: Element) => {
    const box = target.getBoundingClientRect();
    setPlace({ x: Math.min(box.left, window.innerWidth - 240), y: box.bottom + 6 });
  };
  return (
    <span
      tabIndex={focusable ? 0 : undefined}
      aria-describedby={place ? id : undefined}
      onMouseEnter={(event) => show(event.currentTarget)}
      onMouseLeave={() => setPlace(null)}
      onFocus={(event) => show(event.currentTarget)}
      onBlur={() => setPlace(null)}
      onKeyDown={(event) => {
        if (event.key === "Escape") setPlace(null);
      }}
    >
      {children}
      {place
        ? createPortal(
            <span role="tooltip" id={id} className="tooltip" style={{ left: Math.max(8, place.x), top: place.y }}>
              {text}
            </span>,
            document.body,
          )
        : null}
    </span>
  );
}
