import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { RUN_LOOKS } from "../../marks/outcomes";
import { attemptsOf } from "./attemptList";
import { followed, lineText, missingBefore, MOST_LINES, NOTHING_LOGGED, type LogLine } from "./followed";
import { policyFacts } from "./policies";
import { sentence } from "./sentence";

type Known = Parameters<typeof sentence>[0];

const ASKED: Schemas["RunApproval"] = {
  needed: true,
  approval_id: "a",
  status: "pending",
  gates: [],
  expires_at: null,
  decided_by: null,
  decided_at: null,
  reason: null,
  question: null,
};

describe("sentence", () => {
  it.each<[run: Known, text: string]>([
    [{ state: "ready" }, "Waiting for dispatch"],
    [{ state: "ready", attempt: 1 }, "Waiting for attempt 2"],
    [{ state: "queued", task_queue: "q" }, "Waiting in queue q"],
    [
      { state: "ready", waiting_for: { agent_id: "w", in_use: 2, capacity: 2 } },
      "Waiting for agent w: 2 of 2 concurrent runs active",
    ],
    [{ state: "running", assignee: { type: "team", id: "t", member: "ada" } }, "Running on team t (ada)"],
    [{ state: "running", stop_requested_at: "2026-03-01T02:00:00Z" }, "Stop requested, not stopped yet"],
    [{ state: "queued", stop_requested_at: "2026-03-01T02:00:00Z" }, "Stop requested, not stopped yet"],
    [{ state: "cancelled", stop_requested_at: "2026-03-01T02:00:00Z" }, "Cancelled"],
    [{ state: "awaiting_approval" }, "Awaiting approval"],
    [{ state: "awaiting_approval", approval: { ...ASKED, gates: ["publish"] } }, "Awaiting approval for publish"],
    [
      { state: "awaiting_approval", approval: { ...ASKED, question: "which?" } },
      "Waiting for an answer to the agent's question",
    ],
    [{ state: "succeeded" }, "Succeeded"],
    [{ state: "succeeded", attempt: 2 }, "Succeeded on attempt 3"],
    [{ state: "failed", attempt: 3 }, "Failed after 3 attempts"],
    [{ state: "failed", cause: "cost_cap" }, "Failed: cost limit reached"],
    [{ state: "skipped", cause: "branch_not_taken" }, "Skipped: branch condition not met"],
    [{ state: "terminated", cause: "requested" }, "Terminated: requested by a user"],
    [{ state: "skipped", reason: "calendar" }, "Skipped: excluded by calendar"],
    [{ state: "skipped", cause: "toString" }, "Skipped: toString"],
    [
      { state: "rejected", approval: { ...ASKED, decided_by: "ada", reason: "too early" } },
      "Rejected by ada: “too early”",
    ],
    [{ state: "expired" }, "Approval request expired"],
    [{ state: "expired", cause: "superseded" }, "Approval request expired: superseded by a newer occurrence"],
  ])("%j", (run, text) => {
    expect(sentence(run)).toBe(text);
  });

  it("has one for every state", () => {
    for (const state of Object.keys(RUN_LOOKS) as Known["state"][])
      expect(sentence({ state })).toMatch(/^[A-Z].*[a-z]$/);
  });
});

const AT = (second: number) => `2026-03-01T02:00:0${second}Z`;
const event = (event_type: string, second: number, payload: object = {}, run_id = "r"): Schemas["RunEvent"] =>
  ({ run_id, sequence: second, event_type, recorded_at: AT(second), payload, node_id: null }) as Schemas["RunEvent"];
const RUN = {
  run_id: "r",
  state: "succeeded",
  started_at: AT(1),
  finished_at: AT(9),
  error: null,
  error_class: null,
} as const;

describe("attemptsOf", () => {
  it.each<
    [
      name: string,
      run: Parameters<typeof attemptsOf>[0],
      events: Schemas["RunEvent"][],
      attempts: [string, string | null, string | null, string | null][],
    ]
  >([
    ["none yet", { ...RUN, state: "ready", started_at: null, finished_at: null }, [event("run.created", 1)], []],
    ["one", RUN, [event("run.created", 1), event("run.started", 1)], [["succeeded", AT(1), AT(9), null]]],
    [
      "two, the first failed",
      RUN,
      [
        event("run.started", 1),
        event("run.retried", 2, { error: "no", error_class: "timeout" }),
        event("run.started", 3),
      ],
      [
        ["failed", AT(1), AT(2), "no"],
        ["succeeded", AT(3), AT(9), null],
      ],
    ],
    [
      "one was lost",
      { ...RUN, state: "running", finished_at: null },
      [event("run.redelivered", 2)],
      [
        ["unknown", null, AT(2), null],
        ["running", null, null, null],
      ],
    ],
    ["events of a step are ignored", RUN, [event("node.retried", 2, {}, "step")], [["succeeded", AT(1), AT(9), null]]],
    [
      "errors that are no text",
      RUN,
      [event("run.retried", 2, { error: { a: 1 } })],
      [
        ["failed", null, AT(2), null],
        ["succeeded", null, AT(9), null],
      ],
    ],
  ])("%s", (_, run, events, attempts) => {
    expect(attemptsOf(run, events).map((each) => [each.state, each.started_at, each.ended_at, each.error])).toEqual(
      attempts,
    );
  });
});

const line = (number: number): LogLine => ({ number, at: AT(1), attempt: 0, stream: "stdout", text: String(number) });
const said = (numbers: number[], ended = false): Schemas["RunLogs"] => ({
  run_id: "r",
  lines: numbers.map(line),
  next_after: 0,
  ended,
});

describe("followed", () => {
  it("adds what is new once, and knows the end", () => {
    const first = followed(NOTHING_LOGGED, said([1, 2]));
    const second = followed(first, said([2, 3], true));
    expect([second.lines.map((each) => each.number), second.after, second.ended]).toEqual([[1, 2, 3], 3, true]);
    expect(followed(second, said([], true))).toBe(second);
  });

  it("keeps a bounded number of lines", () => {
    const kept = followed(NOTHING_LOGGED, said(Array.from({ length: MOST_LINES + 5 }, (_, index) => index + 1)));
    expect([kept.lines.length, kept.lines[0]!.number, missingBefore(kept.lines, 0)]).toEqual([MOST_LINES, 6, 5]);
  });

  it("knows where lines are missing", () => {
    const { lines } = followed(NOTHING_LOGGED, said([3, 4, 9]));
    expect([0, 1, 2].map((index) => missingBefore(lines, index))).toEqual([2, 0, 4]);
  });

  it.each([
    ["plain", "plain"],
    ["\u001b[31mred\u001b[0m", "red"],
    ["\u001b]0;title\u0007\u001b[2K\u001b(Bplain\u001b]8;;x\u001b\\", "plain"],
    ["10 %\r50 %\r100 %\r", "100 %"],
    ["a\u0000b\bc\td\u007f", "a␀b␈c\td␡"],
    ["\u001b", "␛"],
    ["x".repeat(4_002), `${"x".repeat(4_000)} … 2 more characters`],
  ])("writes a line", (text, written) => {
    expect(lineText(text)).toBe(written);
  });
});

describe("policyFacts", () => {
  it("returns values with their sources and omits empty defaults", () => {
    const policies = {
      approval_policy: { requires_approval: false, gates: ["publish", "spend"], approvers: [] },
      retry_policy: { max_retries: 2, backoff_ms: 1_500, timeout_ms: null },
      failure_policy: { mode: "sensitive_actions" },
      limits: { cost: null },
      origins: {
        "approval_policy.requires_approval": "schedule",
        "approval_policy.gates": "agent",
        "approval_policy.approvers": "default",
        retry_policy: "assignment",
      },
    } as unknown as Schemas["RunPolicies"];
    expect(policyFacts(policies)).toEqual([
      { name: "Approval: requires approval", value: "No", origin: "schedule" },
      { name: "Approval: gates", value: "publish, spend", origin: "agent" },
      { name: "Retry: max retries", value: "2", origin: "assignment" },
      { name: "Retry: backoff", value: "1.5 s", origin: "assignment" },
      { name: "Retry: timeout", value: "None", origin: "assignment" },
      { name: "Failure: mode", value: "sensitive actions", origin: null },
    ]);
  });
});
