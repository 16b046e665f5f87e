import { expect, test } from "vitest";
import type { Doc, Json } from "../../document/document";
import { actionOf, changedKind, kindOf, withKind } from "./kinds";

test.each<[before: Doc, kind: string, after: Doc]>([
  [{ kind: "http", url: "u", input: { a: 1 } }, "pull", { kind: "pull", input: { a: 1 } }],
  [
    { kind: "pull", workflow_type: "w", queue: "q", timeout_seconds: 3 },
    "celery",
    { kind: "celery", queue: "q", timeout_seconds: 3 },
  ],
  [{ kind: "pull", workflow_type: "w", queue: "q" }, "workflow", { kind: "workflow", workflow_type: "w" }],
  [{ kind: "celery", task: "t", connection: "c", queue: "q" }, "python", { kind: "python", task: "t" }],
  // A type from another package keeps the common fields.
  [{ kind: "http", url: "u", delivery: "at_most_once" }, "carrier", { kind: "carrier", delivery: "at_most_once" }],
])("%j becomes %s: %j", (before, kind, after) => expect(withKind(before, kind)).toEqual(after));

test.each<[action: Json | undefined, kind: string]>([
  [{ kind: "carrier", url: "u" }, "carrier"],
  [{ url: "u" }, "http"],
  [{ task: "t" }, "celery"],
  [{ toString: "x" }, "workflow"],
  // Incomplete input.
  ["h", "workflow"],
  [5, "workflow"],
  [["url"], "workflow"],
  [null, "workflow"],
  [undefined, "workflow"],
])("the action %j is of the kind %s", (action, kind) =>
  expect(kindOf(actionOf(action === undefined ? {} : { action }))).toBe(kind),
);

test("changing back restores the fields of a type; common fields keep their current value", () => {
  const http = { kind: "http", url: "u", headers: { a: "b" }, input: 1 };
  const away = changedKind(http, "http", "pull", {});
  expect(away.action).toEqual({ kind: "pull", input: 1 });
  const pull: Doc = { ...away.action, queue: "q", workflow_type: "w", input: 2 };
  const further = changedKind(pull, "pull", "celery", away.left);
  expect(further.action).toEqual({ kind: "celery", queue: "q", input: 2 });
  const celery: Doc = { ...further.action, queue: "other", task: "t" };
  const back = changedKind(celery, "celery", "pull", further.left);
  expect(back.action).toEqual({ kind: "pull", queue: "other", workflow_type: "w", input: 2 });
  expect(changedKind(back.action, "pull", "http", back.left).action).toEqual({ ...http, input: 2 });
});

test("a field removed before the change of type is not restored", () => {
  const first = changedKind({ kind: "http", url: "u" }, "http", "pull", {});
  const again = changedKind(first.action, "pull", "http", first.left);
  const { url: _, ...without } = again.action;
  const away = changedKind(without, "http", "pull", again.left);
  expect(changedKind(away.action, "pull", "http", away.left).action).toEqual({ kind: "http" });
});
