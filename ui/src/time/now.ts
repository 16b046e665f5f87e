// The current time by the clock of the service, as the clock of the browser may be wrong.
import { useSyncExternalStore } from "react";

let ahead = 0; // offset from the clock of the browser, in milliseconds
let current = Date.now();
const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

/** Set the clock from an answer that contains the time. */
export function serverSaysNow(at: string): void {
  const there = Date.parse(at);
  if (Number.isFinite(there)) ahead = there - Date.now();
}

// The header has whole seconds, and the answer took time to arrive.
const NOTICED_MS = 3_000;

/** Correct the clock from the Date header of an answer (RFC 9110, section 6.6.1) after a clock change or sleep. */
export function serverDated(header: string | null): void {
  const there = Date.parse(header ?? "");
  if (Math.abs(there - serverNow()) > NOTICED_MS) ahead = there - Date.now();
}

export function serverNow(): number {
  return Date.now() + ahead;
}

/** The current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => current);
}

function watch(changed: () => void): () => void {
  watchers.add(changed);
  current = serverNow();
  ticking ??= setInterval(() => {
    current = serverNow();
    for (const each of watchers) each();
  }, 1_000);
  return () => {
    watchers.delete(changed);
    if (watchers.size === 0 && ticking !== undefined) {
      clearInterval(ticking);
      ticking = undefined;
    }
  };
}
