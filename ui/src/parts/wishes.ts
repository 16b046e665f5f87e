// The form values of actions on schedules, and the request bodies that they produce.
import { Refused } from "../api/client";
import { readJson } from "../api/json";
import type { Permission } from "../api/session";
import type { Kind } from "./Button";

export type ActionName = "pause" | "resume" | "trigger" | "label" | "delete";

interface Action {
  text: string;
  needs: Permission;
  kind: Kind;
}

export const ACTIONS: Readonly<Record<ActionName, Action>> = {
  pause: { text: "Pause", needs: "operate", kind: "primary" },
  resume: { text: "Resume", needs: "operate", kind: "primary" },
  trigger: { text: "Trigger", needs: "operate", kind: "primary" },
  label: { text: "Label", needs: "write", kind: "primary" },
  delete: { text: "Delete", needs: "write", kind: "danger" },
};

/** The duration of a pause, which the service parses. */
export const PAUSES = [
  ["", "Until resumed"],
  ["1h", "1 hour"],
  ["4h", "4 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["at", "Until…"],
] as const;

export interface Wish {
  lasting: string;
  at: string;
  reason: string;
  inputs: string;
  overlap: string;
  evenIfPaused: boolean;
  set: string;
  off: string;
}

export const NO_WISH: Wish = {
  lasting: "",
  at: "",
  reason: "",
  inputs: "",
  overlap: "",
  evenIfPaused: false,
  set: "",
  off: "",
};

export type Wrong = Partial<Record<keyof Wish, string[]>>;

/** A request body, or the errors of the fields. */
export type Made<T> = { body: T; wrong: null } | { body: null; wrong: Wrong };

/** The end of a pause as the service parses it; null = none. */
export interface End {
  until: string | null;
  timezone?: string;
}

export function endOf(wish: Pick<Wish, "lasting" | "at">, zone: string): Made<End> {
  if (wish.lasting === "") return { body: { until: null }, wrong: null };
  if (wish.lasting !== "at") return { body: { until: wish.lasting }, wrong: null };
  if (wish.at === "") return { body: null, wrong: { at: ["Enter a date and time."] } };
  return { body: { until: wish.at, timezone: zone }, wrong: null };
}

/** An empty text means no inputs: those of the schedule apply. */
export function inputsOf(text: string): Made<unknown> {
  if (text.trim() === "") return { body: undefined, wrong: null };
  try {
    return { body: readJson(text), wrong: null };
  } catch (broken) {
    return { body: null, wrong: { inputs: [`Invalid JSON: ${(broken as Error).message}`] } };
  }
}

export type Labels = Record<string, string | null>;

/** Parse lines of name=value to set and names to remove; a name in both is an error. */
export function labelsOf({ set, off }: Pick<Wish, "set" | "off">): Made<Labels> {
  const labels: Labels = {};
  const wrong: Wrong = {};
  for (const line of set
    .split("\n")
    .map((each) => each.trim())
    .filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) wrong.set = [...(wrong.set ?? []), `${line.slice(0, 60)}: expected name=value`];
    else labels[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  for (const name of off
    .split(/[\n,]/)
    .map((each) => each.trim())
    .filter(Boolean)) {
    if (name in labels) wrong.off = [...(wrong.off ?? []), `${name.slice(0, 60)} is also in the labels to set`];
    else labels[name] = null;
  }
  if (wrong.set || wrong.off) return { body: null, wrong };
  if (Object.keys(labels).length === 0)
    return { body: null, wrong: { set: ["Enter at least one label to set or remove."] } };
  return { body: labels, wrong: null };
}

/** Return whether the service requires a confirmation because many runs would start at once. */
export function asksToConfirm(failure: Error | null): boolean {
  return failure instanceof Refused && failure.reason === "confirm_needed";
}

export { freshKey } from "../api/wishKey";
