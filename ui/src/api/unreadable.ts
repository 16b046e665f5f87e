// Rows that the service could not read: removed from each answer, so that pages show the others.
import { useSyncExternalStore } from "react";
import type { components } from "./schema";

export type UnreadableRow = components["schemas"]["UnreadableRow"];

const MOST_LISTS = 50;
const NONE: readonly UnreadableRow[] = [];
let byNamespace = new Map<string, readonly UnreadableRow[]>();
const byList = new Map<string, { namespace: string; rows: readonly UnreadableRow[] }>();
const listeners = new Set<() => void>();

function isUnreadable(value: unknown): value is UnreadableRow {
  return typeof value === "object" && value !== null && (value as { unreadable?: unknown }).unreadable === true;
}

/** The answer without unreadable rows. The next answer from the same address replaces its rows. */
export function withoutUnreadable(namespace: string, address: string, answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null) return answer;
  const rows = Object.values(answer).filter(Array.isArray).flat().filter(isUnreadable);
  note(namespace, address, rows);
  if (rows.length === 0) return answer;
  const kept = Object.entries(answer).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.filter((each) => !isUnreadable(each)) : (value as unknown),
  ]);
  return Object.fromEntries(kept) as unknown;
}

function note(namespace: string, address: string, rows: readonly UnreadableRow[]): void {
  const list = `${namespace} ${address}`;
  if (rows.length === 0 && !byList.has(list)) return;
  byList.delete(list);
  if (rows.length > 0) byList.set(list, { namespace, rows });
  for (const oldest of [...byList.keys()].slice(0, -MOST_LISTS)) byList.delete(oldest);
  const each = new Map<string, Map<string, UnreadableRow>>();
  for (const { namespace: name, rows: some } of byList.values()) {
    const own = each.get(name) ?? new Map<string, UnreadableRow>();
    for (const row of some) own.set(`${row.id} ${row.detail}`, row);
    each.set(name, own);
  }
  byNamespace = new Map([...each].map(([name, own]) => [name, [...own.values()]]));
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The unreadable rows of a namespace in the last answers. */
export function useUnreadable(namespace: string): readonly UnreadableRow[] {
  return useSyncExternalStore(subscribe, () => byNamespace.get(namespace) ?? NONE);
}
