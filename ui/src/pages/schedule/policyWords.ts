// Texts for the condition, policies and action of a schedule.
import type { Schemas } from "../../api/client";
import { isolated } from "../../parts/isolated";
import { durationText } from "../../time/zones";
import {
  ACTION_KINDS,
  APPROVAL_MODES,
  CATCHUP_TEXTS,
  NO,
  NO_LIMIT,
  NONE,
  OVERLAP_TEXTS,
  POLICY_SOURCES,
  YES,
} from "../../words";

type Schedule = Schemas["Schedule"];

const OPERATORS: Readonly<Record<string, string>> = {
  eq: "equals",
  neq: "does not equal",
  gt: "is greater than",
  lt: "is less than",
  contains: "contains",
};

export interface Clause {
  /** Path in the context, for example `prior_run_result › status`. */
  where: string;
  operator: string;
  value: string;
}

const MOST_VALUE = 200;

/** Return the clauses of a condition, all of which must match. */
export function clausesOf(condition: unknown): Clause[] {
  if (condition === null || typeof condition !== "object") return [];
  const clauses: [string, unknown][] = Object.entries(condition);
  return clauses.map(([pointer, body]) => {
    const tests: [string, unknown][] = body !== null && typeof body === "object" ? Object.entries(body) : [];
    const [operator, value] = tests[0] ?? ["", body];
    return {
      where: pointerWords(pointer),
      operator: OPERATORS[operator] ?? operator,
      value: shortened(JSON.stringify(value) ?? ""),
    };
  });
}

/** Convert a JSON Pointer (RFC 6901) to text: `/a~1b/0` becomes "a/b › 0". */
export function pointerWords(pointer: string): string {
  if (pointer === "") return "Entire context";
  const parts = pointer.replace(/^\//, "").split("/");
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join(" › ");
}

function shortened(text: string): string {
  return text.length > MOST_VALUE ? `${text.slice(0, MOST_VALUE)}…` : text;
}

export function overlapWords(schedule: Pick<Schedule, "overlap_policy" | "max_concurrency">): string {
  const text = OVERLAP_TEXTS[schedule.overlap_policy] ?? schedule.overlap_policy;
  const most = schedule.max_concurrency;
  return schedule.overlap_policy === "allow_all" && most ? `${text} Maximum active runs: ${most}.` : text;
}

export function catchupWords(
  schedule: Pick<Schedule, "catchup_policy" | "max_catchup" | "catchup_window_seconds">,
): string {
  const text = CATCHUP_TEXTS[schedule.catchup_policy] ?? schedule.catchup_policy;
  if (schedule.catchup_policy === "skip") return text;
  const age = schedule.catchup_window_seconds;
  return [
    text,
    schedule.max_catchup ? `Limit: the newest ${schedule.max_catchup}.` : "",
    age ? `Maximum age: ${durationText(age)}.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

export interface ApprovalSaid {
  requires_approval?: boolean | null;
  mode?: Schemas["ApprovalMode"] | null;
  gates?: readonly string[];
  approvals_required?: number | null;
  approvers?: readonly string[];
  expires_after_seconds?: number | null;
}

/** Describe the approval policy; null = the schedule requires no approval. */
export function approvalWords(policy: ApprovalSaid | null | undefined): string | null {
  if (!policy || (!policy.requires_approval && !policy.mode && !policy.gates?.length)) return null;
  const many = policy.approvals_required ?? 1;
  const when = [
    policy.requires_approval ? "before a run starts" : "",
    policy.mode ? (APPROVAL_MODES[policy.mode] ?? policy.mode) : "",
    policy.gates?.length ? `for ${policy.gates.slice(0, 10).join(", ")}` : "",
  ].filter(Boolean);
  const who = policy.approvers?.length ? ` from ${policy.approvers.slice(0, 10).map(isolated).join(", ")}` : "";
  const patience = policy.expires_after_seconds
    ? `. Requests expire after ${durationText(policy.expires_after_seconds)}.`
    : "";
  return `${many === 1 ? "1 approval" : `${many} approvals`}${who} required ${when.join(", ")}${patience}`;
}

export interface PolicyLine {
  name: string;
  value: string;
  source: string;
  isDefault: boolean;
}

/** List the effective policies of the next run with their sources. */
export function policyLines(policies: Schemas["RunPolicies"] | null | undefined): PolicyLine[] {
  if (!policies) return [];
  const origins = policies.origins;
  return Object.keys(origins)
    .sort()
    .map((name) => ({
      name,
      value: valueWords(name, valueAt(policies as unknown as Record<string, unknown>, name)),
      source: POLICY_SOURCES[origins[name]!] ?? origins[name]!,
      isDefault: origins[name] === "default",
    }));
}

/** Format the value of a policy. */
export function valueWords(name: string, value: unknown): string {
  if (value === null || value === undefined) return name.startsWith("limits.") ? NO_LIMIT : "—";
  if (typeof value === "boolean") return value ? YES : NO;
  if (typeof value === "number") return timed(name, value);
  if (Array.isArray(value))
    return value.length === 0 ? NONE : shortened(value.map((each) => valueWords(name, each)).join(", "));
  if (typeof value === "string" || typeof value === "bigint") return shortened(String(value));
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

/** Describe an action in one line: "HTTP request: POST https://…". */
export function actionWords(action: Schemas["ShownAction"]): string {
  const said = action as Readonly<Record<string, unknown>>;
  const kind = typeof said["kind"] === "string" ? said["kind"] : "";
  const names = (ACTIONS[kind] ?? [])
    .map((field) => said[field])
    .filter((value): value is string => typeof value === "string" && value !== "");
  const label = Object.hasOwn(ACTION_KINDS, kind) ? ACTION_KINDS[kind as keyof typeof ACTION_KINDS] : kind;
  const method = kind === "http" && typeof said["method"] === "string" ? `${said["method"]} ` : "";
  return names.length > 0 ? `${label}: ${method}${shortened(names[0]!)}` : label;
}
