import { expect, test } from "vitest";
import {
  actionWords,
  approvalWords,
  catchupWords,
  clausesOf,
  overlapWords,
  pointerWords,
  policyLines,
  valueWords,
} from "./policyWords";

test("a condition is its clauses", () => {
  expect(clausesOf({ "/prior_run_result/status": { eq: "completed" }, "/last_24h_stats/failed": { lt: 3 } })).toEqual([
    { where: "prior_run_result › status", operator: "equals", value: '"completed"' },
    { where: "last_24h_stats › failed", operator: "is less than", value: "3" },
  ]);
  expect(clausesOf(null)).toEqual([]);
  expect(clausesOf({ "/a": { newer: 1 } })[0]!.operator).toBe("newer");
  expect(clausesOf({ "/a": { eq: "x".repeat(10_000) } })[0]!.value.length).toBeLessThan(220);
});

test.each([
  ["", "Entire context"],
  ["/a~1b/0", "a/b › 0"],
  ["/x~01", "x~1"],
])("pointer %s is %s", (pointer, words) => expect(pointerWords(pointer)).toBe(words));

test.each([
  [null, null],
  [{ requires_approval: false }, null],
  [{ requires_approval: true }, "1 approval required before a run starts"],
  [
    { requires_approval: true, approvals_required: 2, approvers: ["role:operator"], expires_after_seconds: 7_200 },
    "2 approvals from role:operator required before a run starts. Requests expire after 2 h.",
  ],
  [{ mode: "every_node" as const, gates: ["send_mail"] }, "1 approval required before every step, for send_mail"],
])("approval %#", (policy, words) => expect(approvalWords(policy)).toBe(words));

test("overlap and catch-up", () => {
  expect(overlapWords({ overlap_policy: "allow_all", max_concurrency: 4 })).toBe(
    "Run concurrently. Maximum active runs: 4.",
  );
  expect(overlapWords({ overlap_policy: "skip", max_concurrency: 1 })).toBe(
    "Skip an occurrence while an earlier run is active.",
  );
  expect(catchupWords({ catchup_policy: "fire_all", max_catchup: 10, catchup_window_seconds: 3_600 })).toBe(
    "Start a run for each missed occurrence. Limit: the newest 10. Maximum age: 1 h.",
  );
});

test("each policy has its source", () => {
  const policies = {
    origins: { retry_policy: "schedule", "limits.cost": "default" },
    retry_policy: { max_retries: 2 },
    limits: { cost: 5 },
  };
  expect(policyLines(policies as never)).toEqual([
    { name: "limits.cost", value: "5", source: "Default", isDefault: true },
    { name: "retry_policy", value: "max retries: 2", source: "Schedule", isDefault: false },
  ]);
  expect(policyLines(null)).toEqual([]);
});

test.each([
  ["limits.cost", null, "No limit"],
  ["approval_policy.mode", null, "—"],
  ["approval_policy.requires_approval", true, "Yes"],
  ["approval_policy.expires_after_seconds", 86_400, "1 d"],
  ["approval_policy.gates", [], "None"],
  [
    "retry_policy",
    { max_retries: 3, backoff_ms: 1_500, timeout_ms: null, retry_on: ["timeout", "rate_limit"] },
    "max retries: 3 · backoff ms: 1.5 s · retry on: timeout, rate_limit",
  ],
])("the value of %s %#", (name, value, words) => expect(valueWords(name, value)).toBe(words));

test.each([
  [{ kind: "http", url: "https://example.org/x", method: "PUT" }, "HTTP request: PUT https://example.org/x"],
  [{ kind: "workflow", workflow_type: "Report" }, "Workflow: Report"],
  [{ kind: "unknown" }, "unknown"],
])("an action in a line %#", (action, words) => expect(actionWords(action as never)).toBe(words));
