// The tooltip of the mark under the pointer or the focus. Screen readers read the accessible name of the mark.
import { useImperativeHandle, useState, type Ref } from "react";
import { createPortal } from "react-dom";

export interface HoverHandle {
  over: (target: Element) => void;
  clear: () => void;
}

interface Place {
  text: string;
  x: number;
  y: number;
}

export function HoverText({ ref }: { ref: Ref<HoverHandle> }) {
  const [place, setPlace] = useState<Place | null>(null);
  useImperativeHandle(ref, () => ({
    over: (target) => {
      const found = target.closest<SVGElement>("[data-tip]");
      const text = found?.dataset["tip"];
      if (!found || !text) return setPlace(null);
      const box = found.getBoundingClientRect();
      setPlace({ text, x: Math.min(Math.max(8, box.left), window.innerWidth - 300), y: box.bottom + 6 });
    },
    clear: () => setPlace(null),
  }));
  if (place === null) return null;
  return createPortal(
    <span className="tooltip" aria-hidden="true" style={{ left: Math.max(8, place.x), top: place.y }}>
      {place.text}
    </span>,
    document.body,
  );
}
