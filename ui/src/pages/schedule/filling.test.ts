import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { filledLook, fillingWords, progressOf } from "./filling";

const row = (outcome: Schemas["Filled"]["outcome"], run_id: string | null = null): Schemas["Filled"] => ({
  fire_time: "2026-11-16T08:00:00Z",
  outcome,
  run_id,
  workflow_id: null,
  reason: outcome === "skipped" ? "calendar" : null,
  detail: null,
});

test.each([
  [[], true, false, "No runs would be created."],
  [[row("started")], true, false, "1 run would be created."],
  [
    [row("started"), row("buffered"), row("buffered"), row("skipped")],
    true,
    false,
    "3 runs would be created: 1 immediate, 2 buffered. 1 occurrence would be skipped.",
  ],
  [[row("started"), row("started")], false, false, "2 runs created."],
  [
    [row("skipped"), row("skipped")],
    false,
    true,
    "No runs created. 2 occurrences skipped. The schedule reaches its max runs before the end of the window.",
  ],
])("backfill summary %#", (results, dry_run, stopped, words) =>
  expect(fillingWords({ results, dry_run, stopped })).toBe(words),
);

test("immediate, buffered and skipped occurrences look different", () => {
  expect(
    new Set(["started", "buffered", "skipped"].map((outcome) => filledLook(row(outcome as never)).shape)).size,
  ).toBe(3);
});

test("progress counts the runs of this backfill only", () => {
  const made = [row("started", "a"), row("buffered", "b"), row("buffered", "c"), row("skipped")];
  const open = (ids: string[], next_page_token: string | null = null) => ({
    runs: ids.map((run_id) => ({ run_id })),
    next_page_token,
  });
  expect(progressOf(made, open(["c", "of-another"]))).toEqual({ runs: 3, over: 2, isAtMost: false });
  expect(progressOf(made, open([]))).toEqual({ runs: 3, over: 3, isAtMost: false });
  expect(progressOf(made, open(["c"], "more"))).toEqual({ runs: 3, over: 2, isAtMost: true });
});
