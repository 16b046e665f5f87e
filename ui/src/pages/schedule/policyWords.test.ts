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
  ["", "the whole context"],
  ["/a~1b/0", "a/b › 0"],
  ["/x~01", "x~1"],
])("pointer %s is %s", (pointer, words) => expect(pointerWords(pointer)).toBe(words));

test.each([
  [null, null],
  [{ requires_approval: false }, null],
  [{ requires_approval: true }, "a yes is asked for before a run starts"],
  [
    { requires_approval: true, approvals_required: 2, approvers: ["role:operator"], expires_after_seconds: 7_200 },
    "2 people's yes of role:operator is asked for before a run starts; a yes is waited for 2 h",
  ],
  [{ mode: "every_node", gates: ["send_mail"] }, "a yes is asked for before every step, for send_mail"],
])("approval %#", (policy, words) => expect(approvalWords(policy)).toBe(words));

test("overlap and catch-up", () => {
  expect(overlapWords({ overlap_policy: "allow_all", max_concurrency: 4 })).toBe(
    "runs go on beside each other, at most 4 at once",
  );
  expect(overlapWords({ overlap_policy: "skip", max_concurrency: 1 })).toBe("while a run is busy, the next is skipped");
  expect(catchupWords({ catchup_policy: "fire_all", max_catchup: 10, catchup_window_seconds: 3_600 })).toBe(
    "each that was missed gets its run, the newest 10, no older than 1 h",
  );
});

test("each policy with who said it", () => {
  const policies = {
    origins: { retry_policy: "schedule", "limits.cost": "default" },
    retry_policy: { max_retries: 2 },
    limits: { cost: 5 },
  };
  expect(policyLines(policies as never)).toEqual([
    { name: "limits.cost", value: "5", origin: "nobody: the default", isDefault: true },
    { name: "retry_policy", value: "max retries: 2", origin: "this schedule", isDefault: false },
  ]);
  expect(policyLines(null)).toEqual([]);
});

test.each([
  ["limits.cost", null, "no limit"],
  ["approval_policy.mode", null, "—"],
  ["approval_policy.requires_approval", true, "yes"],
  ["approval_policy.expires_after_seconds", 86_400, "1 d"],
  ["approval_policy.gates", [], "none"],
  [
    "retry_policy",
    { max_retries: 3, backoff_ms: 1_500, timeout_ms: null, retry_on: ["timeout", "rate_limit"] },
    "max retries: 3 · backoff ms: 1.5 s · retry on: timeout, rate_limit",
  ],
])("the value of %s %#", (name, value, words) => expect(valueWords(name, value)).toBe(words));

test.each([
  [{ kind: "http", url: "https://example.org/x", method: "PUT" }, "http: PUT https://example.org/x"],
  [{ kind: "workflow", workflow_type: "Report" }, "workflow: Report"],
  [{ kind: "unknown" }, "unknown"],
])("an action in a line %#", (action, words) => expect(actionWords(action as never)).toBe(words));
