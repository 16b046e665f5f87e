// The texts of approval requests and the permission to decide them. Pure functions.
import type { Schemas } from "../../api/client";
import type { Look } from "../../marks/outcomes";
import { APPROVAL_STATES } from "../../words";

export type Approval = Schemas["Approval"];
export type Status = Schemas["ApprovalDecision"];

export const APPROVAL_LOOKS: Readonly<Record<Status, Look>> = {
  pending: { word: APPROVAL_STATES.pending, tone: "warn", shape: "question" },
  approved: { word: APPROVAL_STATES.approved, tone: "ok", shape: "disc" },
  modified: { word: APPROVAL_STATES.modified, tone: "ok", shape: "half" },
  rejected: { word: APPROVAL_STATES.rejected, tone: "bad", shape: "slash" },
  expired: { word: APPROVAL_STATES.expired, tone: "quiet", shape: "slash" },
};

/** The kind of answer: an agent that asks during its work needs a text. */
export type Wanted = "yes" | "text" | "text or yes";

export function wantedOf(approval: Pick<Approval, "gates">): Wanted {
  if (approval.gates.includes("agent_input")) return "text";
  return approval.gates.includes("agent_auth") ? "text or yes" : "yes";
}

interface Caller {
  principal: string;
  role: string;
  permissions: readonly string[];
}

/** A list of approvers replaces the permission. An unreadable request cannot be decided. The service checks this again. */
export function mayDecide(who: Caller, approval: Pick<Approval, "approvers" | "broken">): boolean {
  if (approval.broken) return false;
  if (approval.approvers.length === 0) return who.permissions.includes("approve");
  return approval.approvers.includes(who.principal) || approval.approvers.includes(`role:${who.role}`);
}

/** The reason why the service would refuse a decision of this caller; null = none. */
export function refusalOf(approval: Pick<Approval, "may_decide" | "refusal_message">): string | null {
  return approval.may_decide === false ? (approval.refusal_message ?? "") : null;
}

type Titled = Pick<Approval, "schedule_id" | "schedule_name" | "workflow_id" | "workflow_name" | "node_id">;

/** The name or id of the schedule or workflow. */
export function titleOf(approval: Titled): string {
  const { schedule_id: id, schedule_name: name } = approval;
  const whole = name || id || approval.workflow_name || approval.workflow_id || "Run";
  return approval.node_id === null ? whole : `${whole} · ${approval.node_id}`;
}

export function askedText(approval: Pick<Approval, "gates" | "node_id">): string {
  if (approval.gates.includes("agent_input")) return "The agent asks a question.";
  if (approval.gates.includes("agent_auth")) return "The agent requests authentication.";
  const what = approval.node_id === null ? "This run" : `Step ${approval.node_id}`;
  return approval.gates.length === 0
    ? `${what} requires approval before it starts.`
    : `${what} requires approval for ${approval.gates.join(", ")}.`;
}

/** Return whether the caller has approved the current inputs. */
export function hasAgreed(who: Pick<Caller, "principal">, approval: Pick<Approval, "votes">): boolean {
  return approval.votes.some((vote) => vote.by === who.principal && vote.decision !== "reject");
}

/** The approvals so far and the number required, such as "1 of 2". */
export function yesText(approval: Pick<Approval, "votes" | "approvals_required">): string {
  const yes = new Set(approval.votes.filter((vote) => vote.decision !== "reject").map((vote) => vote.by)).size;
  return `${yes} of ${approval.approvals_required}`;
}

type Fields = Readonly<Record<string, unknown>>;
const MOST = 160;

const ACTIONS: Readonly<Record<string, (action: Fields) => string>> = {
  http: (action) => `${said(action["method"]) || "POST"} request to ${said(action["url"])}`,
  workflow: (action) =>
    action["workflow_id"]
      ? `Workflow ${said(action["workflow_id"])}`
      : `Task${action["workflow_type"] ? ` ${said(action["workflow_type"])}` : ""}${inQueue(action)}`,
  pull: (action) => `Task${action["workflow_type"] ? ` ${said(action["workflow_type"])}` : ""}${inQueue(action)}`,
  prompt: (action) => `Agent prompt: “${said(action["prompt"])}”`,
  celery: (action) => `Celery task ${said(action["task"])}${inQueue(action)}`,
  python: (action) => `Python task ${said(action["task"] ?? action["callable"])}`,
  command: (action) =>
    `Command ${Array.isArray(action["command"]) ? action["command"].map(said).join(" ") : said(action["command"])}`,
};

/** The action in one line, such as "POST request to https://…"; null if there is none. */
export function actionText(action: Fields | null | undefined, most = MOST): string | null {
  if (!action) return null;
  const kind = said(action["kind"]);
  const text = Object.hasOwn(ACTIONS, kind) ? ACTIONS[kind]!(action) : kind === "" ? null : `Action of kind ${kind}`;
  return text === null ? null : shortened(text, most);
}

function inQueue(action: Fields): string {
  return action["queue"] ? ` in queue ${said(action["queue"])}` : "";
}

function said(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : (JSON.stringify(value) ?? "");
}

export function shortened(text: string, most = MOST): string {
  const letters = [...text.replace(/\s+/g, " ").trim()];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
}

/** A value in one line, for a row of a list. */
export function inline(value: unknown): string {
  return value === null || value === undefined ? "No inputs" : shortened(JSON.stringify(value) ?? "", 140);
}
