import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import type { Doc } from "../../document/document";
import { asksOf, otherwiseText } from "./asking";

function holding(asked: boolean, origin: string): Schemas["RunPolicies"] {
  return {
    approval_policy: { requires_approval: asked },
    origins: { "approval_policy.requires_approval": origin },
  } as unknown as Schemas["RunPolicies"];
}

test.each<[policy: Doc | undefined, holds: Schemas["RunPolicies"] | null, text: string, asks: boolean]>([
  [undefined, null, "not said here", false],
  [undefined, holding(true, "default"), "not said here: yes, by default", true],
  [undefined, holding(false, "default"), "not said here: no, by default", false],
  [undefined, holding(true, "agent"), "not said here: yes, by the agent", true],
  [{ requires_approval: false }, holding(true, "workflow"), "not said here", true],
  [{ requires_approval: false }, holding(false, "schedule"), "not said here", false],
  [{ requires_approval: true }, null, "not said here", true],
  [{ gates: ["publish"] }, holding(false, "default"), "not said here: no, by default", true],
])("%j", (policy, holds, text, asks) => {
  const document: Doc = policy === undefined ? {} : { approval_policy: policy };
  expect([otherwiseText(document, holds), asksOf(document, holds)]).toEqual([text, asks]);
});
