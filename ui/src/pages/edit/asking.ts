// Whether somebody is asked before a run, and by whose word; pure.
import type { Schemas } from "../../api/client";
import { getAt, isObject, type Doc } from "../../document/document";

type Policies = Schemas["RunPolicies"] | null | undefined;

const FIELD = "requires_approval";

function isAsked(policies: Policies): boolean | null {
  const found = policies?.approval_policy[FIELD];
  return typeof found === "boolean" ? found : null;
}

const WORDS: Readonly<Record<string, string>> = {
  default: "by default",
  assignment: "by the assignment",
  agent: "by the agent",
  workflow: "by the workflow",
};

/** What holds where the schedule itself says nothing; the service knows, once it was asked. */
export function otherwiseText(document: Doc, policies: Policies): string {
  const asked = isAsked(policies);
  const origin = policies?.origins[`approval_policy.${FIELD}`] ?? "default";
  const isSilent = getAt(document, ["approval_policy", FIELD]) === undefined;
  if (asked === null || !isSilent) return "not said here";
  return `not said here: ${asked ? "yes" : "no"}, ${WORDS[origin] ?? origin}`;
}

/** Whether there is anything to say of how it is asked: somebody is, or something was said of it already. */
export function asksOf(document: Doc, policies: Policies): boolean {
  const own = document["approval_policy"];
  if (isAsked(policies) === true || getAt(document, ["approval_policy", FIELD]) === true) return true;
  return isObject(own) && Object.keys(own).some((name) => name !== FIELD);
}
