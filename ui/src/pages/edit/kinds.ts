// Fields of each action type, and the conversion between types.
import type { Schemas } from "../../api/client";
import { isObject, type Doc } from "../../document/document";

export type Action = Schemas["Action"];
export type Kind = NonNullable<Action["kind"]>;

/** Fields that are valid for one action type only. A test compares them with the server. */
export const OF_KIND: Readonly<Record<Kind, readonly (keyof Action)[]>> = {
  http: ["url", "method", "headers", "secret"],
  prompt: ["prompt"],
  workflow: ["workflow_id", "workflow_type", "workflow_class", "version"],
  pull: ["workflow_type"],
  celery: ["task", "args", "kwargs"],
  command: ["command"],
  python: ["task", "callable"],
};

/** Fields that every action accepts but only these types use. */
const MEANT_BY: Partial<Record<Kind, readonly (keyof Action)[]>> = {
  pull: ["queue"],
  celery: ["queue", "connection"],
};

/** Return the action of a document, or an empty one if it is not an object. */
export function actionOf(document: Doc): Doc {
  const action = document["action"];
  return isObject(action) ? action : {};
}

const TOLD_BY: readonly (readonly [field: keyof Action, kind: Kind])[] = [
  ["url", "http"],
  ["prompt", "prompt"],
  ["task", "celery"],
  ["command", "command"],
];

/** Return the written action type, or infer it from the fields as the server does. */
export function kindOf(action: Doc): string {
  const kind = action["kind"];
  if (typeof kind === "string") return kind;
  return TOLD_BY.find(([field]) => Object.hasOwn(action, field))?.[1] ?? "workflow";
}

function fieldsOf(kind: string): readonly string[] {
  const own = Object.hasOwn(OF_KIND, kind) ? OF_KIND[kind as Kind] : [];
  return [...own, ...(MEANT_BY[kind as Kind] ?? [])];
}

/** Change the action type and drop the fields that only the old type has. */
export function withKind(action: Doc, kind: string): Doc {
  const known = new Set(fieldsOf(kind));
  const foreign = new Set(
    Object.keys(OF_KIND)
      .flatMap(fieldsOf)
      .filter((name) => !known.has(name)),
  );
  return { ...Object.fromEntries(Object.entries(action).filter(([name]) => !foreign.has(name))), kind };
}

/** Fields dropped from each type, to be restored later. */
export type Left = Readonly<Record<string, Doc>>;

/** Change the action type, and keep dropped fields for a change back. Fields of both types keep their value. */
export function changedKind(action: Doc, from: string, to: string, left: Left): { action: Doc; left: Left } {
  const next = withKind(action, to);
  const behind = Object.fromEntries(Object.entries(action).filter(([name]) => !Object.hasOwn(next, name)));
  const found = Object.hasOwn(left, to) ? left[to] : {};
  return { action: { ...found, ...next }, left: { ...left, [from]: behind } };
}
