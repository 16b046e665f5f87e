// What is asked of somebody, in words: how it stands, what it would do, and who may decide; pure.
import type { Schemas } from "../../api/client";
import type { Look } from "../../marks/outcomes";

export type Approval = Schemas["Approval"];
export type Status = Schemas["ApprovalDecision"];

export const APPROVAL_LOOKS: Readonly<Record<Status, Look>> = {
  pending: { word: "waits for a yes", tone: "warn", shape: "question" },
  approved: { word: "approved", tone: "ok", shape: "disc" },
  modified: { word: "approved with changes", tone: "ok", shape: "half" },
  rejected: { word: "rejected", tone: "bad", shape: "slash" },
  expired: { word: "expired", tone: "quiet", shape: "slash" },
};

/** What an agent asks in the middle of its work: a text answers it. */
export type Wanted = "yes" | "text" | "text or yes";

export function wantedOf(approval: Pick<Approval, "gates">): Wanted {
  if (approval.gates.includes("agent_input")) return "text";
  return approval.gates.includes("agent_auth") ? "text or yes" : "yes";
}

interface Somebody {
  principal: string;
  role: string;
  permissions: readonly string[];
}

/** A list of approvers replaces the permission; the service decides anyway, and knows who asked. A damaged one: nobody. */
export function mayDecide(who: Somebody, approval: Pick<Approval, "approvers" | "broken">): boolean {
  if (approval.broken) return false;
  if (approval.approvers.length === 0) return who.permissions.includes("approve");
  return approval.approvers.includes(who.principal) || approval.approvers.includes(`role:${who.role}`);
}

/** Why a decision of this caller would be refused; null = it would be accepted. */
export function refusalOf(approval: Pick<Approval, "may_decide" | "refusal_message">): string | null {
  return approval.may_decide === false ? (approval.refusal_message ?? "") : null;
}

type Titled = Pick<Approval, "schedule_id" | "schedule_name" | "workflow_id" | "workflow_name" | "node_id">;

/** The name of its schedule, or of its workflow; without one the id. */
export function titleOf(approval: Titled): string {
  const { schedule_id: id, schedule_name: name } = approval;
  const whole = name || id || approval.workflow_name || approval.workflow_id || "A run";
  return approval.node_id === null ? whole : `${whole} · ${approval.node_id}`;
}

export function askedText(approval: Pick<Approval, "gates" | "node_id">): string {
  if (approval.gates.includes("agent_input")) return "An agent asks something in the middle of its work.";
  if (approval.gates.includes("agent_auth")) return "An agent needs to be let in somewhere.";
  const what = approval.node_id === null ? "This run" : `The step ${approval.node_id}`;
  return approval.gates.length === 0
    ? `${what} needs a yes before it starts.`
    : `${what} touches ${approval.gates.join(", ")}, and needs a yes.`;
}

/** Whether they have agreed to it as it is now: once more would count for nothing. */
export function hasAgreed(who: Pick<Somebody, "principal">, approval: Pick<Approval, "votes">): boolean {
  return approval.votes.some((vote) => vote.by === who.principal && vote.decision !== "reject");
}

/** Distinct yeses so far, of those that it takes. */
export function yesText(approval: Pick<Approval, "votes" | "approvals_required">): string {
  const yes = new Set(approval.votes.filter((vote) => vote.decision !== "reject").map((vote) => vote.by)).size;
  return `${yes} of ${approval.approvals_required}`;
}

type Fields = Readonly<Record<string, unknown>>;
const MOST = 160;

const ACTIONS: Readonly<Record<string, (action: Fields) => string>> = {
  http: (action) => `Sends ${said(action["method"]) || "POST"} to ${said(action["url"])}`,
  workflow: (action) =>
    action["workflow_id"]
      ? `Runs the workflow ${said(action["workflow_id"])}`
      : `Gives ${said(action["workflow_type"]) || "a task"} to a worker${inQueue(action)}`,
  pull: (action) => `Gives ${said(action["workflow_type"]) || "a task"} to a worker${inQueue(action)}`,
  prompt: (action) => `Tells an agent: “${said(action["prompt"])}”`,
  celery: (action) => `Sends the Celery task ${said(action["task"])}${inQueue(action)}`,
  python: (action) => `Calls the function ${said(action["task"] ?? action["callable"])}`,
  command: (action) =>
    `Runs the command ${Array.isArray(action["command"]) ? action["command"].map(said).join(" ") : said(action["command"])}`,
};

/** "Sends POST to https://…"; null where nothing is known of it. */
export function actionText(action: Fields | null | undefined, most = MOST): string | null {
  if (!action) return null;
  const kind = said(action["kind"]);
  const text = Object.hasOwn(ACTIONS, kind)
    ? ACTIONS[kind]!(action)
    : kind === ""
      ? null
      : `Does something of the kind ${kind}`;
  return text === null ? null : shortened(text, most);
}

function inQueue(action: Fields): string {
  return action["queue"] ? ` in the queue ${said(action["queue"])}` : "";
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
  return value === null || value === undefined ? "no inputs" : shortened(JSON.stringify(value) ?? "", 140);
}
