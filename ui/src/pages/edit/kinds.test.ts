import { expect, test } from "vitest";
import type { Doc } from "../../document/document";
import { withKind } from "./kinds";

test.each<[before: Doc, kind: string, after: Doc]>([
  [{ kind: "http", url: "u", input: { a: 1 } }, "pull", { kind: "pull", input: { a: 1 } }],
  [
    { kind: "pull", workflow_type: "w", queue: "q", timeout_seconds: 3 },
    "celery",
    { kind: "celery", queue: "q", timeout_seconds: 3 },
  ],
  [{ kind: "pull", workflow_type: "w", queue: "q" }, "workflow", { kind: "workflow", workflow_type: "w" }],
  [{ kind: "celery", task: "t", connection: "c", queue: "q" }, "python", { kind: "python", task: "t" }],
  // A kind that another package brings keeps what all have.
  [{ kind: "http", url: "u", delivery: "at_most_once" }, "carrier", { kind: "carrier", delivery: "at_most_once" }],
])("%j becomes %s: %j", (before, kind, after) => expect(withKind(before, kind)).toEqual(after));
