import { expect, test } from "vitest";
import { evidence, questionText, sentenceParts } from "./evidence";

test.each<[string, unknown, string[]]>([
  ["spec", null, []],
  [
    "spec",
    { parts: [{ cron: "0 9 * * *", timezone: "UTC", local_time: "2026-03-01T10:00:00", failed: ["HOUR 9"] }] },
    ["Cron 0 9 * * * at 2026-03-01T10:00:00 UTC: no match in HOUR 9"],
  ],
  [
    "spec",
    {
      parts: [
        { every: "5m", offset: "0s", seconds_past: 61 },
        { at: "one-off", next: null },
      ],
    },
    ["Every 5m: 61 s after the previous one", "One-time runs: none left"],
  ],
  [
    "calendar",
    { calendar: "bank", date: "2026-12-25", kind: "closed", text: "Christmas" },
    ["bank · 2026-12-25 · Christmas"],
  ],
  [
    "condition_failed",
    { result: false, clauses: [{ pointer: "/load", operator: "lt", operand: 3, found: true, value: 4, holds: false }] },
    ["Not met: /load lt 3 (actual: 4)"],
  ],
  [
    "condition_failed",
    {
      result: false,
      signal_error: "timeout",
      clauses: [{ pointer: "/x", operator: "eq", operand: "a", found: false, value: null, holds: false }],
    },
    ["Signal request failed: timeout", "Not met: /x eq a (not found)"],
  ],
  [
    "overlap",
    { policy: "skip", active: 1, held: 0, active_run_ids: ["r1"] },
    ["Policy: skip", "Active: 1", "Buffered: 0", "Active runs: r1"],
  ],
  ["new_question", { some_field: [1, 2], other: null }, ["Some field: [1,2]"]],
  ["remaining_actions_exhausted", { max_runs: 3, runs_born: 3 }, ["Max runs: 3", "Runs created: 3"]],
  ["new_question", "a text", ["a text"]],
])("evidence of %s in %j", (question, detail, lines) => {
  expect(evidence(question, detail)).toEqual(lines);
});

test("hostile details stay short", () => {
  const parts = Array.from({ length: 500 }, () => ({ cron: "x".repeat(10_000), failed: ["a"] }));
  const lines = evidence("spec", { parts });
  expect(lines).toHaveLength(13);
  expect(lines.every((line) => line.length <= 401)).toBe(true);
  expect(lines.at(-1)).toBe("and 488 more");
});

test("a question of a later release is shown by its name", () => {
  expect(questionText("moon_phase")).toBe("moon phase");
});

test.each([
  ["nothing to find", [{ text: "nothing to find" }]],
  ["2026-03-01T23:00:00Z is on the spec.", [{ at: "2026-03-01T23:00:00Z" }, { text: " is on the spec." }]],
  [
    "next after it is 2026-03-01T23:00:00.5Z.",
    [{ text: "next after it is " }, { at: "2026-03-01T23:00:00.5Z" }, { text: "." }],
  ],
  [
    "Its run 01M7NK7GADEPZVWA6PCPV648P0 failed, not 01M7NK7GADEPZVWA6PCPV648P0X.",
    [
      { text: "Its run " },
      { run: "01M7NK7GADEPZVWA6PCPV648P0" },
      { text: " failed, not 01M7NK7GADEPZVWA6PCPV648P0X." },
    ],
  ],
  ["2026-99-99T99:00:00Z", [{ text: "2026-99-99T99:00:00Z" }]],
])("parts of %j", (sentence, parts) => {
  expect(sentenceParts(sentence)).toEqual(parts);
});
