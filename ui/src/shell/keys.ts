// What keys do: `/` searches, `g` and a letter goes somewhere, j and k move through rows, `?` tells all of it.
import type { LinkProps } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

export type PlacePath = NonNullable<LinkProps["to"]>;

export const PLACES: Readonly<Record<string, readonly [path: PlacePath, text: string]>> = {
  n: ["/", "Now"],
  s: ["/schedules", "Schedules"],
  r: ["/runs", "Runs"],
  a: ["/approvals", "Approvals"],
  w: ["/workflows", "Workflows"],
  c: ["/calendars", "Calendars"],
  t: ["/agents", "Agents and teams"],
  u: ["/audit", "Audit"],
};

interface Doings {
  go: (path: PlacePath) => void;
  help: () => void;
}

const PATIENCE_MS = 1_500;

export function useKeys({ go, help }: Doings): void {
  const leader = useRef(0);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const place = PLACES[event.key];
      if (event.timeStamp - leader.current < PATIENCE_MS && place !== undefined) {
        leader.current = 0;
        event.preventDefault();
        go(place[0]);
      } else if (event.key === "g") leader.current = event.timeStamp;
      else if (event.key === "?") help();
      else if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLElement>("[data-search]")?.focus();
      } else if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [go, help]);
}

/** Rows say `data-row` and hold one link: it takes the focus, and Enter follows it. */
function moveRow(step: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("[data-row] a[href]:first-of-type")];
  const rows = links.filter(
    (link, index) => links.findIndex((other) => other.closest("[data-row]") === link.closest("[data-row]")) === index,
  );
  if (rows.length === 0) return;
  const current = rows.findIndex((row) => row.closest("[data-row]")?.contains(document.activeElement));
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, current + step));
  rows[next]!.focus();
  rows[next]!.scrollIntoView({ block: "nearest" });
}

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}
