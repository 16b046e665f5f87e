// Effective approval requirement of a draft and its origin.
import type { Schemas } from "../../api/client";
import { getAt, isObject, type Doc } from "../../document/document";

type Policies = Schemas["RunPolicies"] | null | undefined;

const FIELD = "requires_approval";

function isAsked(policies: Policies): boolean | null {
  const found = policies?.approval_policy[FIELD];
  return typeof found === "boolean" ? found : null;
}

const ORIGINS: Readonly<Record<string, string>> = {
  assignment: ", from the assignment",
  agent: ", from the agent",
  workflow: ", from the workflow",
};

/** Label of the "inherit" choice, with the inherited value once the draft answer is known. */
export function otherwiseText(document: Doc, policies: Policies): string {
  const asked = isAsked(policies);
  const origin = policies?.origins[`approval_policy.${FIELD}`] ?? "default";
  const isSilent = getAt(document, ["approval_policy", FIELD]) === undefined;
  if (asked === null || !isSilent) return "Inherit";
  return `Inherit (${asked ? "yes" : "no"}${ORIGINS[origin] ?? ""})`;
}

/** Return whether to show approval details: approval is required, or other approval fields are set. */
export function asksOf(document: Doc, policies: Policies): boolean {
  const own = document["approval_policy"];
  if (isAsked(policies) === true || getAt(document, ["approval_policy", FIELD]) === true) return true;
  return isObject(own) && Object.keys(own).some((name) => name !== FIELD);
}
