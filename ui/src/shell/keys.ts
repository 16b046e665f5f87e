// Keyboard shortcuts: `/` searches, `g` and a letter opens a page, j and k move between rows, `?` lists them.
import type { LinkProps } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

export type PlacePath = NonNullable<LinkProps["to"]>;

export const PLACES: Readonly<Record<string, readonly [path: PlacePath, text: string]>> = {
  n: ["/", "Overview"],
  s: ["/schedules", "Schedules"],
  r: ["/runs", "Runs"],
  a: ["/approvals", "Approvals"],
  w: ["/workflows", "Workflows"],
  c: ["/calendars", "Calendars"],
  t: ["/agents", "Agents and Teams"],
  k: ["/access", "Access"],
  u: ["/audit", "Audit"],
  l: ["/cluster", "Cluster"],
};

type Shortcut = readonly [keys: readonly string[], text: string];

/** All shortcuts beyond those of every browser, grouped by where they apply. */
export const KEYS: readonly (readonly [where: string, shortcuts: readonly Shortcut[]])[] = [
  [
    "Anywhere",
    [
      [["/"], "Search schedules"],
      [["j", "k"], "Next or previous row; Enter opens it"],
      [["?"], "Show shortcuts"],
      [["Esc"], "Close dialog or menu"],
    ],
  ],
  ["Go to", Object.entries(PLACES).map(([key, [, text]]): Shortcut => [["g", key], text])],
  [
    "Timeline",
    [
      [["←", "→"], "Earlier or later"],
      [["+", "−"], "Zoom in or out"],
    ],
  ],
  [
    "Timeline marks",
    [
      [["←", "→"], "Previous or next mark; Shift moves the timeline"],
      [["↑", "↓"], "Nearest mark of the adjacent schedule"],
      [["Home", "End"], "First or last visible mark"],
      [["Enter"], "Explain"],
    ],
  ],
  [
    "Run history, charts and tabs",
    [
      [["←", "→"], "Previous or next; Enter opens the run"],
      [["Home", "End"], "First or last"],
    ],
  ],
  [
    "Year calendar",
    [
      [["←", "→"], "Day"],
      [["↑", "↓"], "Week"],
      [["PgUp", "PgDn"], "Month"],
      [["Home", "End"], "First or last day of the month"],
    ],
  ],
  ["Workflow graph", [[["←", "→", "↑", "↓"], "Move between steps; Enter opens a step"]]],
];

interface Doings {
  go: (path: PlacePath) => void;
  help: () => void;
}

// The time between `g` and its letter, long enough to search for the key.
const PATIENCE_MS = 5_000;
const LONG_AGO = -PATIENCE_MS;

export function useKeys({ go, help }: Doings): void {
  const leader = useRef(LONG_AGO);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // An open dialog or menu handles its own keys.
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

/** Focus the first link of the next element with `data-row`; Enter follows it. */
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

// Input types that do not accept letters.
const PRESSED = ["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"];

export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !PRESSED.includes(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName));
}
