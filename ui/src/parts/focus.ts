// Focus management: to the title of a new page, and close to its last place if the focused element disappears.
import { useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
// Containers of related controls, in which the next control gets the focus.
const BOXES =
  "dialog, section, form, fieldset, [data-row], [role=rowgroup], [role=group], .actions, .row, tbody, ul, ol, .lanes-body";

/** A container of the focused control, and the index of the control in it. */
interface Nearby {
  box: Element;
  index: number;
}

/** The last place of the focus. */
export interface Place {
  element: Element;
  /** The containers, from the innermost outwards. */
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

/** The replacement: in the nearest remaining container, the control with the same index, or the last one. */
export function nearestTo({ element, nearby }: Place): Element | null {
  if (isUsable(element)) return element;
  for (const { box, index } of nearby) {
    const controls = box.isConnected ? controlsIn(box) : [];
    if (controls.length > 0) return controls[Math.min(Math.max(index, 0), controls.length - 1)]!;
  }
  return null;
}

/** A dialog restores the focus to the element that opened it. */
export function withPlace(stood: readonly Place[], next: Place): Place[] {
  const last = stood.findIndex((each) => each.dialog === next.dialog);
  return [...(last < 0 ? stood : stood.slice(0, last)), next];
}

/** Focus the title of the page, or the content region until the title is rendered. */
export function focusPage(): void {
  const content = document.getElementById("content");
  (content?.querySelector<HTMLElement>("h1") ?? content)?.focus({ preventScroll: true });
}

/** Move the focus from the content region to a title that is rendered later. */
export function takeFromContent(title: HTMLElement | null): void {
  if (document.activeElement?.id === "content") title?.focus({ preventScroll: true });
}

/** Used once, in the frame. */
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
    // A closed select changes with every arrow key, so it keeps the focus (WCAG 2.2, 3.2.2).
    if (!(document.activeElement instanceof HTMLSelectElement)) focusPage();
  }, [path]);
}

/** Observe the document, as browsers send no event when the focused element is removed. */
function keepFocus(): () => void {
  let stood: readonly Place[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const arrived = (event: FocusEvent) => {
    if (event.target instanceof Element) stood = withPlace(stood, placeOf(event.target));
  };
  // A click outside any control is intended, so the focus is not restored.
  const pressed = () =>
    setTimeout(() => {
      if (isNobodys()) stood = [];
    });
  document.addEventListener("focusin", arrived, { signal });
  document.addEventListener("pointerdown", pressed, { signal });
  const watch = new MutationObserver(() => {
    const last = stood.at(-1);
    // No element has the focus while it moves between elements; the previous one still exists then.
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
