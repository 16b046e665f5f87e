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
  [undefined, null, "Inherit", false],
  [undefined, holding(true, "default"), "Inherit (yes)", true],
  [undefined, holding(false, "default"), "Inherit (no)", false],
  [undefined, holding(true, "agent"), "Inherit (yes, from the agent)", true],
  [{ requires_approval: false }, holding(true, "workflow"), "Inherit", true],
  [{ requires_approval: false }, holding(false, "schedule"), "Inherit", false],
  [{ requires_approval: true }, null, "Inherit", true],
  [{ gates: ["publish"] }, holding(false, "default"), "Inherit (no)", true],
])("%j", (policy, holds, text, asks) => {
  const document: Doc = policy === undefined ? {} : { approval_policy: policy };
  expect([otherwiseText(document, holds), asksOf(document, holds)]).toEqual([text, asks]);
});
