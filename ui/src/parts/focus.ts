// Where the focus goes by itself: to the title of a page that was gone to, and close to where it stood if that is taken away.
import { useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
// What stands together: whoever loses one of its controls looks for the next one there.
const BOXES =
  "dialog, section, form, fieldset, [data-row], [role=rowgroup], [role=group], .actions, .row, tbody, ul, ol, .lanes-body";

/** One of the places where the focus can go when its own is gone: the box, and which of its controls it was. */
interface Nearby {
  box: Element;
  index: number;
}

/** Where the focus stood. */
export interface Place {
  element: Element;
  /** From the nearest box outwards. */
  nearby: readonly Nearby[];
  dialog: Element | null;
}

export function placeOf(element: Element): Place {
  const nearby: Nearby[] = [];
  const dialog = element.closest("dialog");
  for (let box = element.closest(BOXES); box !== null; box = box.parentElement?.closest(BOXES) ?? null) {
    nearby.push({ box, index: controlsIn(box).indexOf(element) });
    if (box === dialog) break;
  }
  return { element, nearby, dialog };
}

function controlsIn(box: Element): Element[] {
  return [...box.querySelectorAll(FOCUSABLE)].filter(isUsable);
}

function isUsable(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled");
}

/** What took its place: in the nearest box that is left, the control with the same number, or the last one. */
export function nearestTo({ element, nearby }: Place): Element | null {
  if (isUsable(element)) return element;
  for (const { box, index } of nearby) {
    const controls = box.isConnected ? controlsIn(box) : [];
    if (controls.length > 0) return controls[Math.min(Math.max(index, 0), controls.length - 1)]!;
  }
  return null;
}

/** A dialog is a place of its own in front of the one from which it was opened. */
export function withPlace(stood: readonly Place[], next: Place): Place[] {
  const last = stood.findIndex((each) => each.dialog === next.dialog);
  return [...(last < 0 ? stood : stood.slice(0, last)), next];
}

/** The title if it is there, else the room for it: whoever goes to a page begins with what it is. */
export function focusPage(): void {
  const content = document.getElementById("content");
  (content?.querySelector<HTMLElement>("h1") ?? content)?.focus({ preventScroll: true });
}

/** For the title of a page that comes later than the room for it. */
export function takeFromContent(title: HTMLElement | null): void {
  if (document.activeElement?.id === "content") title?.focus({ preventScroll: true });
}

/** Once, in the frame. */
export function useFocus(): void {
  usePageFocus();
  useEffect(keepFocus, []);
}

function usePageFocus(): void {
  const path = useLocation({ select: (at) => at.pathname });
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    // A closed select chooses with every arrow key: whoever steps through it is not thrown out (WCAG 2.2, 3.2.2).
    if (!(document.activeElement instanceof HTMLSelectElement)) focusPage();
  }, [path]);
}

/** What is taken away is not told to anybody by the browser: the document is watched, and asked whether it was there. */
function keepFocus(): () => void {
  let stood: readonly Place[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const arrived = (event: FocusEvent) => {
    if (event.target instanceof Element) stood = withPlace(stood, placeOf(event.target));
  };
  // A press beside everything is meant: nobody is to be brought back from it.
  const pressed = () =>
    setTimeout(() => {
      if (isNobodys()) stood = [];
    });
  document.addEventListener("focusin", arrived, { signal });
  document.addEventListener("pointerdown", pressed, { signal });
  const watch = new MutationObserver(() => {
    const last = stood.at(-1);
    // While it goes from one to the other it is nobody's, too: what it left is still there then.
    if (last !== undefined && !isUsable(last.element) && isNobodys()) stood = broughtBack(stood);
  });
  watch.observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  return () => {
    watch.disconnect();
    stop.abort();
  };
}

function isNobodys(): boolean {
  const focused = document.activeElement;
  return focused === null || focused === document.body || focused.matches(":disabled");
}

function broughtBack(stood: readonly Place[]): readonly Place[] {
  for (const place of [...stood].reverse()) {
    const next = nearestTo(place);
    if (!(next instanceof HTMLElement || next instanceof SVGElement)) continue;
    next.focus({ preventScroll: true });
    if (document.activeElement === next) return withPlace(stood, placeOf(next));
  }
  focusPage();
  return isNobodys() ? [] : [placeOf(document.activeElement!)];
}
