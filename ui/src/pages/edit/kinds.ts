// Which fields an action of each kind has, and what becomes of them when somebody chooses another kind.
import type { Schemas } from "../../api/client";
import { isObject, type Doc } from "../../document/document";

export type Action = Schemas["Action"];
export type Kind = NonNullable<Action["kind"]>;

/** Fields that belong to one kind, as the service declares them: another kind refuses them. A test compares. */
export const OF_KIND: Readonly<Record<Kind, readonly (keyof Action)[]>> = {
  http: ["url", "method", "headers", "secret"],
  prompt: ["prompt"],
  workflow: ["workflow_id", "workflow_type", "workflow_class", "version"],
  pull: ["workflow_type"],
  celery: ["task", "args", "kwargs"],
  command: ["command"],
  python: ["task", "callable"],
};

/** Fields that every action may have, and that mean something for these kinds alone. */
const MEANT_BY: Partial<Record<Kind, readonly (keyof Action)[]>> = {
  pull: ["queue"],
  celery: ["queue", "connection"],
};

/** What is done; nothing yet where the text says something that is no action. */
export function actionOf(document: Doc): Doc {
  const action = document["action"];
  return isObject(action) ? (action as Doc) : {};
}

const TOLD_BY: readonly (readonly [field: keyof Action, kind: Kind])[] = [
  ["url", "http"],
  ["prompt", "prompt"],
  ["task", "celery"],
  ["command", "command"],
];

/** As it is written, or as the service would take it by its fields. */
export function kindOf(action: Doc): string {
  const kind = action["kind"];
  if (typeof kind === "string") return kind;
  return TOLD_BY.find(([field]) => Object.hasOwn(action, field))?.[1] ?? "workflow";
}

function fieldsOf(kind: string): readonly string[] {
  const own = Object.hasOwn(OF_KIND, kind) ? OF_KIND[kind as Kind] : [];
  return [...own, ...(MEANT_BY[kind as Kind] ?? [])];
}

/** The action with another kind: what only the old kind knows is left behind. */
export function withKind(action: Doc, kind: string): Doc {
  const known = new Set(fieldsOf(kind));
  const foreign = new Set(
    Object.keys(OF_KIND)
      .flatMap(fieldsOf)
      .filter((name) => !known.has(name)),
  );
  return { ...Object.fromEntries(Object.entries(action).filter(([name]) => !foreign.has(name))), kind };
}

/** What each kind had when it was left. */
export type Left = Readonly<Record<string, Doc>>;

/** The action with another kind, and what is kept for whoever comes back: a field that both know stays as it is now. */
export function changedKind(action: Doc, from: string, to: string, left: Left): { action: Doc; left: Left } {
  const next = withKind(action, to);
  const behind = Object.fromEntries(Object.entries(action).filter(([name]) => !Object.hasOwn(next, name)));
  const found = Object.hasOwn(left, to) ? left[to] : {};
  return { action: { ...found, ...next }, left: { ...left, [from]: behind } };
}
