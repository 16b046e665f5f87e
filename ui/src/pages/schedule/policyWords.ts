// What a schedule's condition, calendars, rotation and policies are, in words.
import type { Schemas } from "../../api/client";
import { isolated } from "../../parts/isolated";
import { durationText } from "../../time/zones";

type Schedule = Schemas["Schedule"];

const OPERATORS: Readonly<Record<string, string>> = {
  eq: "equals",
  neq: "is not",
  gt: "is more than",
  lt: "is less than",
  contains: "contains",
};

export interface Clause {
  /** Where it looks, as `prior_run_result › status`. */
  where: string;
  operator: string;
  value: string;
}

const MOST_VALUE = 200;

/** All of them must hold. */
export function clausesOf(condition: unknown): Clause[] {
  if (condition === null || typeof condition !== "object") return [];
  return Object.entries(condition).map(([pointer, body]) => {
    const [operator, value] =
      body !== null && typeof body === "object" ? (Object.entries(body)[0] ?? ["", body]) : ["", body];
    return {
      where: pointerWords(pointer),
      operator: OPERATORS[operator] ?? operator,
      value: shortened(JSON.stringify(value) ?? ""),
    };
  });
}

/** RFC 6901 for people: `/a~1b/0` is "a/b › 0". */
export function pointerWords(pointer: string): string {
  if (pointer === "") return "the whole context";
  const parts = pointer.replace(/^\//, "").split("/");
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join(" › ");
}

function shortened(text: string): string {
  return text.length > MOST_VALUE ? `${text.slice(0, MOST_VALUE)}…` : text;
}

const OVERLAPS: Readonly<Record<Schemas["OverlapPolicy"], string>> = {
  skip: "while a run is busy, the next is skipped",
  buffer_one: "while a run is busy, one more is held",
  buffer_all: "while a run is busy, the others are held, in order",
  cancel_other: "the next cancels the one that is busy",
  terminate_other: "the next terminates the one that is busy",
  allow_all: "runs go on beside each other",
};

const CATCHUPS: Readonly<Record<Schemas["CatchupPolicy"], string>> = {
  skip: "what was missed is not made up for",
  fire_once: "however many were missed, one run stands for them",
  fire_all: "each that was missed gets its run",
  spread: "each that was missed gets its run, spread over time",
};

export function overlapWords(schedule: Pick<Schedule, "overlap_policy" | "max_concurrency">): string {
  const words = OVERLAPS[schedule.overlap_policy] ?? schedule.overlap_policy;
  const most = schedule.max_concurrency;
  return schedule.overlap_policy === "allow_all" && most ? `${words}, at most ${most} at once` : words;
}

export function catchupWords(
  schedule: Pick<Schedule, "catchup_policy" | "max_catchup" | "catchup_window_seconds">,
): string {
  const words = CATCHUPS[schedule.catchup_policy] ?? schedule.catchup_policy;
  if (schedule.catchup_policy === "skip") return words;
  const age = schedule.catchup_window_seconds;
  return [
    words,
    schedule.max_catchup ? `the newest ${schedule.max_catchup}` : "",
    age ? `no older than ${durationText(age)}` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

const MODES: Readonly<Record<string, string>> = {
  every_node: "before every step",
  sensitive_actions: "before what is sensitive",
  on_block: "when a step says that it is blocked",
};

export interface ApprovalSaid {
  requires_approval?: boolean | null;
  mode?: string | null;
  gates?: readonly string[];
  approvals_required?: number | null;
  approvers?: readonly string[];
  expires_after_seconds?: number | null;
}

/** null = nobody is asked. */
export function approvalWords(policy: ApprovalSaid | null | undefined): string | null {
  if (!policy || (!policy.requires_approval && !policy.mode && !policy.gates?.length)) return null;
  const many = policy.approvals_required ?? 1;
  const when = [
    policy.requires_approval ? "before a run starts" : "",
    policy.mode ? (MODES[policy.mode] ?? policy.mode) : "",
    policy.gates?.length ? `for ${policy.gates.slice(0, 10).join(", ")}` : "",
  ].filter(Boolean);
  const who = policy.approvers?.length ? ` of ${policy.approvers.slice(0, 10).map(isolated).join(", ")}` : "";
  const patience = policy.expires_after_seconds
    ? `; a yes is waited for ${durationText(policy.expires_after_seconds)}`
    : "";
  return `${many === 1 ? "a yes" : `${many} people's yes`}${who} is asked for ${when.join(", ")}${patience}`;
}

/** Where a run comes from, as its list calls it. */
export const ORIGIN_WORDS: Readonly<Record<Schemas["Origin"], string>> = {
  scheduled: "by the clock",
  manual: "by hand",
  backfill: "backfill",
  api: "by a program",
  step: "step of a workflow",
};

export const POLICY_ORIGINS: Readonly<Record<string, string>> = {
  agent: "the agent",
  assignment: "the assignment",
  default: "nobody: the default",
  schedule: "this schedule",
  workflow: "the workflow",
};

export interface PolicyLine {
  name: string;
  value: string;
  origin: string;
  /** Nobody said it. */
  isDefault: boolean;
}

/** Every policy that the next run would be born with, and who said it. */
export function policyLines(policies: Schemas["RunPolicies"] | null | undefined): PolicyLine[] {
  if (!policies) return [];
  const origins = policies.origins as Readonly<Record<string, string>>;
  return Object.keys(origins)
    .sort()
    .map((name) => ({
      name,
      value: valueWords(name, valueAt(policies as unknown as Record<string, unknown>, name)),
      origin: POLICY_ORIGINS[origins[name]!] ?? origins[name]!,
      isDefault: origins[name] === "default",
    }));
}

/** What is not there is no limit; seconds are a duration; an object is its fields. */
export function valueWords(name: string, value: unknown): string {
  if (value === null || value === undefined) return name.startsWith("limits.") ? "no limit" : "—";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return timed(name, value);
  if (Array.isArray(value))
    return value.length === 0 ? "none" : shortened(value.map((each) => valueWords(name, each)).join(", "));
  if (typeof value !== "object") return shortened(String(value));
  const fields = Object.entries(value).filter(([, each]) => each !== null);
  return shortened(
    fields.map(([field, each]) => `${field.replaceAll("_", " ")}: ${valueWords(field, each)}`).join(" · "),
  );
}

function timed(name: string, value: number): string {
  if (name.endsWith("_seconds")) return durationText(value);
  return name.endsWith("_ms") ? durationText(value / 1000) : value.toLocaleString("en-GB");
}

function valueAt(from: Readonly<Record<string, unknown>>, name: string): unknown {
  return name
    .split(".")
    .reduce<unknown>((value, part) => (value as Record<string, unknown> | null | undefined)?.[part], from);
}

const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  workflow: ["workflow_id", "workflow_type", "workflow_class"],
  pull: ["workflow_type", "queue"],
  prompt: ["prompt"],
  http: ["url"],
  celery: ["task"],
  python: ["task", "callable"],
  command: ["command"],
};

/** "http: https://…"; what a run does, in a line. */
export function actionWords(action: Schemas["ShownAction"]): string {
  const said = action as Readonly<Record<string, unknown>>;
  const kind = String(said["kind"] ?? "");
  const names = (ACTIONS[kind] ?? [])
    .map((field) => said[field])
    .filter((value): value is string => typeof value === "string" && value !== "");
  const method = kind === "http" && typeof said["method"] === "string" ? `${said["method"]} ` : "";
  return names.length > 0 ? `${kind}: ${method}${shortened(names[0]!)}` : kind;
}
