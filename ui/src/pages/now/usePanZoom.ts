// Pan and zoom: dragging and arrow keys pan; plus, minus and Ctrl with the wheel zoom.
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { isTyping } from "../../shell/keys";
import { panned, zoomed, type Span } from "../../time/axis";

const DRAG_PIXELS = 5;
// The wheel sends many small steps; only the last one changes the address and sends a request.
const SETTLE_MS = 180;
// While dragging, a CSS transform moves the drawing; it renders again on release.
const SHIFT = "--shift";

export function usePanZoom(
  frame: RefObject<HTMLElement | null>,
  plot: RefObject<HTMLElement | null>,
  settled: Span,
  onSpan: (span: Span) => void,
) {
  const [moving, setMoving] = useState<Span | null>(null);
  const dragged = useRef(false);
  const latest = useRef({ settled, moving, onSpan });
  latest.current = { settled, moving, onSpan };
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    return listen(element, plot, latest, setMoving, dragged);
  }, [frame, plot]);
  // When the address has the new view, the view comes from the address again.
  useLayoutEffect(() => {
    setMoving(null);
    if (!dragged.current) frame.current?.style.removeProperty(SHIFT);
  }, [frame, settled.from, settled.to]);
  return { span: moving ?? settled, wasDragged: () => dragged.current };
}

interface Latest {
  settled: Span;
  moving: Span | null;
  onSpan: (span: Span) => void;
}

function listen(
  element: HTMLElement,
  plot: RefObject<HTMLElement | null>,
  latest: RefObject<Latest>,
  setMoving: (span: Span) => void,
  dragged: RefObject<boolean>,
): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let settle: ReturnType<typeof setTimeout> | undefined;
  const current = () => latest.current.moving ?? latest.current.settled;
  const later = (span: Span) => {
    setMoving(span);
    clearTimeout(settle);
    settle = setTimeout(() => latest.current.onSpan(span), SETTLE_MS);
  };
  const wheel = (event: WheelEvent) => {
    const next = plot.current && wheeled(event, plot.current.getBoundingClientRect(), current());
    if (!next) return;
    event.preventDefault();
    later(next);
  };
  const down = (event: PointerEvent) => {
    dragged.current = false;
    const width = plot.current?.clientWidth ?? 0;
    if (event.button !== 0 || width === 0 || (event.target as Element).closest("a, button, input") !== null) return;
    const end = (by: number) => {
      const span = panned(current(), -by / width);
      setMoving(span);
      latest.current.onSpan(span);
    };
    drag(event, element, end, dragged);
  };
  const keys = (event: KeyboardEvent) => {
    const next = isTyping(event.target) || isAmongMarks(event) ? null : keyed(event, current());
    if (next === null) return;
    event.preventDefault();
    latest.current.onSpan(next);
  };
  element.addEventListener("wheel", wheel, { passive: false, signal });
  element.addEventListener("pointerdown", down, { signal });
  element.addEventListener("keydown", keys, { signal });
  return () => {
    clearTimeout(settle);
    stop.abort();
  };
}

function drag(
  begun: PointerEvent,
  element: HTMLElement,
  onEnd: (by: number) => void,
  dragged: RefObject<boolean>,
): void {
  const stop = new AbortController();
  const { signal } = stop;
  let by = 0;
  const move = (event: PointerEvent) => {
    by = event.clientX - begun.clientX;
    if (!dragged.current && Math.abs(by) < DRAG_PIXELS) return;
    dragged.current = true;
    element.style.setProperty(SHIFT, `${by}px`);
  };
  const end = (isKept: boolean) => {
    stop.abort();
    const wasDragged = dragged.current;
    // The click after a drag belongs to the drag.
    setTimeout(() => {
      dragged.current = false;
      element.style.removeProperty(SHIFT);
    });
    if (wasDragged && isKept) onEnd(by);
  };
  window.addEventListener("pointermove", move, { signal });
  window.addEventListener("pointerup", () => end(true), { signal });
  window.addEventListener("pointercancel", () => end(false), { signal });
}

/** Ctrl zooms around the pointer, horizontal wheel pans; null = the page scrolls. */
export function wheeled(
  event: Pick<WheelEvent, "deltaX" | "deltaY" | "ctrlKey" | "clientX">,
  box: Pick<DOMRect, "left" | "width">,
  span: Span,
): Span | null {
  if (event.ctrlKey) {
    const around = span.from + ((event.clientX - box.left) / box.width) * (span.to - span.from);
    return zoomed(span, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 200), around);
  }
  return Math.abs(event.deltaX) > 2 * Math.abs(event.deltaY) ? panned(span, event.deltaX / box.width) : null;
}

/** Arrow keys on a mark move to its neighbours; with Shift they pan. */
function isAmongMarks(event: KeyboardEvent): boolean {
  return event.key.startsWith("Arrow") && !event.shiftKey && (event.target as Element).closest("[data-mark]") !== null;
}

/** The view after a key press; null = unchanged. */
export function keyed(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">, span: Span): Span | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const middle = (span.from + span.to) / 2;
  switch (event.key) {
    case "ArrowLeft":
      return panned(span, -0.15);
    case "ArrowRight":
      return panned(span, 0.15);
    case "+":
    case "=":
      return zoomed(span, 0.5, middle);
    case "-":
      return zoomed(span, 2, middle);
    default:
      return null;
  }
}
