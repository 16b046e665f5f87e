// What somebody wants done with schedules, as a form holds it, and the bodies of the requests that come of it.
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

/** How long a pause lasts: until somebody ends it, for so long, or until a time on the wall; the service reads them. */
export const PAUSES = [
  ["", "until somebody resumes"],
  ["1h", "for 1 hour"],
  ["4h", "for 4 hours"],
  ["1d", "for 1 day"],
  ["7d", "for 7 days"],
  ["at", "until a day and hour…"],
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

/** Either what to send, or which fields cannot be sent. */
export type Made<T> = { body: T; wrong: null } | { body: null; wrong: Wrong };

/** When it ends, in words of the service: which instant that is, the service says. null = it has no end. */
export interface End {
  until: string | null;
  timezone?: string;
}

export function endOf(wish: Pick<Wish, "lasting" | "at">, zone: string): Made<End> {
  if (wish.lasting === "") return { body: { until: null }, wrong: null };
  if (wish.lasting !== "at") return { body: { until: wish.lasting }, wrong: null };
  if (wish.at === "") return { body: null, wrong: { at: ["give a day and an hour"] } };
  return { body: { until: wish.at, timezone: zone }, wrong: null };
}

/** An empty text is no input at all: the schedule's own are taken. */
export function inputsOf(text: string): Made<unknown> {
  if (text.trim() === "") return { body: undefined, wrong: null };
  try {
    return { body: readJson(text), wrong: null };
  } catch (broken) {
    return { body: null, wrong: { inputs: [`this is no JSON: ${(broken as Error).message}`] } };
  }
}

export type Labels = Record<string, string | null>;

/** Lines of name=value to set, names to take off; a name in both is a mistake. */
export function labelsOf({ set, off }: Pick<Wish, "set" | "off">): Made<Labels> {
  const labels: Labels = {};
  const wrong: Wrong = {};
  for (const line of set
    .split("\n")
    .map((each) => each.trim())
    .filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) wrong.set = [...(wrong.set ?? []), `${line.slice(0, 60)}: write name=value`];
    else labels[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  for (const name of off
    .split(/[\n,]/)
    .map((each) => each.trim())
    .filter(Boolean)) {
    if (name in labels) wrong.off = [...(wrong.off ?? []), `${name.slice(0, 60)} is set above`];
    else labels[name] = null;
  }
  if (wrong.set || wrong.off) return { body: null, wrong };
  if (Object.keys(labels).length === 0)
    return { body: null, wrong: { set: ["name at least one label to set or to take off"] } };
  return { body: labels, wrong: null };
}

/** Whether the service asks if so many runs at once are meant. */
export function asksToConfirm(failure: Error | null): boolean {
  return failure instanceof Refused && failure.reason === "confirm_needed";
}

export { freshKey } from "../api/wishKey";
