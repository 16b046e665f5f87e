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
  k: ["/access", "Tokens and secrets"],
  u: ["/audit", "Audit"],
  l: ["/cluster", "Cluster"],
};

type Told = readonly [keys: readonly string[], text: string];

/** All that keys do beyond what they do in every browser, by where they do it. */
export const KEYS: readonly (readonly [where: string, told: readonly Told[]])[] = [
  [
    "Anywhere",
    [
      [["/"], "find schedules"],
      [["j", "k"], "next and previous row; Enter opens it"],
      [["?"], "this list"],
      [["Esc"], "close what is open in front"],
    ],
  ],
  ["Go to", Object.entries(PLACES).map(([key, [, text]]): Told => [["g", key], text])],
  [
    "On the timeline of Now",
    [
      [["←", "→"], "earlier and later"],
      [["+", "−"], "zoom in and out"],
    ],
  ],
  [
    "On a mark of the timeline",
    [
      [["←", "→"], "the marks of its lane; with Shift the timeline moves"],
      [["↑", "↓"], "the nearest mark of the next lane"],
      [["Home", "End"], "first and last mark in view"],
      [["Enter"], "why?"],
    ],
  ],
  [
    "On strips, bars and tabs",
    [
      [["←", "→"], "the one before and after; Enter opens its run"],
      [["Home", "End"], "first and last"],
    ],
  ],
  [
    "On a year",
    [
      [["←", "→"], "days"],
      [["↑", "↓"], "weeks"],
      [["PgUp", "PgDn"], "months"],
      [["Home", "End"], "first and last day of the month"],
    ],
  ],
  ["On a graph", [[["←", "→", "↑", "↓"], "walk along it; Enter opens a step"]]],
];

interface Doings {
  go: (path: PlacePath) => void;
  help: () => void;
}

// Between `g` and its letter: also for whoever looks for each key.
const PATIENCE_MS = 5_000;
const LONG_AGO = -PATIENCE_MS;

export function useKeys({ go, help }: Doings): void {
  const leader = useRef(LONG_AGO);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // What is open in front has the keys for itself.
      if (document.querySelector("dialog[open], :popover-open") !== null) return;
      const place = event.timeStamp - leader.current < PATIENCE_MS ? PLACES[event.key] : undefined;
      leader.current = event.key === "g" ? event.timeStamp : LONG_AGO;
      if (place !== undefined) {
        event.preventDefault();
        go(place[0]);
      } else if (event.key === "?") help();
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

// Inputs into which no letter goes.
const PRESSED = ["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"];

export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !PRESSED.includes(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName));
}
