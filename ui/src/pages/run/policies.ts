// The policies that hold for a run, flat: each with its value and with who said it; pure.
import type { Schemas } from "../../api/client";
import { durationText } from "../../time/zones";

export interface PolicyFact {
  name: string;
  value: string;
  origin: string | null;
}

const PARTS = ["approval_policy", "retry_policy", "failure_policy", "limits"] as const;

/** What nobody said, and is nothing, is left out. */
export function policyFacts(policies: Schemas["RunPolicies"]): PolicyFact[] {
  return PARTS.flatMap((part) =>
    Object.entries(policies[part] ?? {}).flatMap(([name, value]): PolicyFact[] => {
      const origin = policies.origins[`${part}.${name}`] ?? policies.origins[part] ?? null;
      if (isNothing(value) && (origin === null || origin === "default")) return [];
      return [{ name: nameText(part, name), value: valueText(name, value), origin }];
    }),
  );
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || value === false || (Array.isArray(value) && value.length === 0);
}

/** "retry: backoff"; the unit stands with the value. */
function nameText(part: string, name: string): string {
  return `${part.replace("_policy", "")}: ${name.replace(/_(seconds|ms)$/, "").replaceAll("_", " ")}`;
}

function valueText(name: string, value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "number" && name.endsWith("_seconds")) return durationText(value);
  if (typeof value === "number" && name.endsWith("_ms")) return durationText(value / 1000);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ") || "none";
  return typeof value === "string" ? value.replaceAll("_", " ") : JSON.stringify(value);
}
