// The names of policies and their choices, for forms, dialogs and detail pages.
import type { Schemas } from "../api/client";

type Choices<Value extends string> = readonly (readonly [value: Value, label: string])[];

export const OVERLAP_LABEL = "Overlap policy";

/** Applies while an earlier run of the schedule is active. */
export const OVERLAPS: Readonly<Record<Schemas["OverlapPolicy"], string>> = {
  skip: "Skip",
  buffer_one: "Buffer one",
  buffer_all: "Buffer all",
  allow_all: "Allow concurrent",
  cancel_other: "Cancel active run",
  terminate_other: "Terminate active run",
};

export const OVERLAP_CHOICES = Object.entries(OVERLAPS) as unknown as Choices<Schemas["OverlapPolicy"]>;

/** The choices of one action; the first uses the policy of the schedule. */
export const OVERLAP_CHOICES_OF_ACTION: Choices<Schemas["OverlapPolicy"] | ""> = [
  ["", "Use schedule policy"],
  ...OVERLAP_CHOICES,
];

/** One sentence that explains each overlap policy. */
export const OVERLAP_TEXTS: Readonly<Record<Schemas["OverlapPolicy"], string>> = {
  skip: "Skip an occurrence while an earlier run is active.",
  buffer_one: "Buffer one run while an earlier run is active.",
  buffer_all: "Buffer all runs while an earlier run is active and start them in order.",
  allow_all: "Run concurrently.",
  cancel_other: "Cancel the active run, then start the new one.",
  terminate_other: "Terminate the active run, then start the new one.",
};

export const CATCHUP_LABEL = "Catch-up";

/** Applies to occurrences that were missed while the scheduler was down. */
export const CATCHUPS: Readonly<Record<Schemas["CatchupPolicy"], string>> = {
  fire_once: "Run once",
  skip: "Skip",
  fire_all: "Run all",
  spread: "Run all, spread out",
};

export const CATCHUP_CHOICES = Object.entries(CATCHUPS) as unknown as Choices<Schemas["CatchupPolicy"]>;

/** One sentence that explains each catch-up policy. */
export const CATCHUP_TEXTS: Readonly<Record<Schemas["CatchupPolicy"], string>> = {
  fire_once: "Start one run for all missed occurrences.",
  skip: "Skip missed occurrences.",
  fire_all: "Start a run for each missed occurrence.",
  spread: "Start a run for each missed occurrence, spread over time.",
};

export const DST_GAP_LABEL = "Nonexistent time (DST)";
export const DST_GAP_CHOICES: Choices<"next_valid" | "skip"> = [
  ["next_valid", "Run at next valid time"],
  ["skip", "Skip"],
];

export const DST_FOLD_LABEL = "Ambiguous time (DST)";
export const DST_FOLD_CHOICES: Choices<"first" | "second" | "both"> = [
  ["first", "First"],
  ["second", "Second"],
  ["both", "Both"],
];

export const DELIVERY_LABEL = "Delivery guarantee";
export const DELIVERY_CHOICES: Choices<"at_least_once" | "at_most_once"> = [
  ["at_least_once", "At least once"],
  ["at_most_once", "At most once"],
];

export const FAILURE_LABEL = "If a workflow step fails";
export const FAILURE_CHOICES: Choices<"isolate" | "halt" | "fallback"> = [
  ["isolate", "Continue independent steps"],
  ["halt", "Halt workflow"],
  ["fallback", "Reassign to fallback"],
];
export const FALLBACK_LABEL = "Fallback assignee";

/** The effect that a run awaiting approval has on the next occurrence. */
export const WHILE_WAITING_LABEL = "While awaiting approval";
export const WHILE_WAITING_CHOICES: Choices<"count" | "supersede" | "ignore"> = [
  ["count", "Apply overlap policy"],
  ["supersede", "Newer run replaces it"],
  ["ignore", "Ignore for overlap"],
];

/** When the steps of a run require approval. */
export const APPROVAL_MODES: Readonly<Record<Schemas["ApprovalMode"], string>> = {
  every_node: "before every step",
  sensitive_actions: "before sensitive actions",
  on_block: "when a step is blocked",
};

/** The level that sets the value of a policy. */
export const POLICY_SOURCES: Readonly<Record<Schemas["PolicyOrigin"], string>> = {
  agent: "Agent",
  assignment: "Assignment",
  default: "Default",
  schedule: "Schedule",
  workflow: "Workflow",
};

export const ALL_DEFAULTS = "All policies use defaults.";
