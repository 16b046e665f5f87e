// The effective policies of a run as a flat list of names, values and sources.
import type { Schemas } from "../../api/client";
import { durationText } from "../../time/zones";
import { NONE, YES, NO } from "../../words";

export interface PolicyFact {
  name: string;
  value: string;
  origin: string | null;
}

const PARTS = ["approval_policy", "retry_policy", "failure_policy", "limits"] as const;

/** Omit defaults without a value. */
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

/** "Retry: backoff"; the value includes the unit. */
function nameText(part: string, name: string): string {
  const label = part.replace("_policy", "");
  return `${label.charAt(0).toUpperCase()}${label.slice(1)}: ${name.replace(/_(seconds|ms)$/, "").replaceAll("_", " ")}`;
}

function valueText(name: string, value: unknown): string {
  if (value === null || value === undefined) return NONE;
  if (typeof value === "number" && name.endsWith("_seconds")) return durationText(value);
  if (typeof value === "number" && name.endsWith("_ms")) return durationText(value / 1000);
  if (typeof value === "boolean") return value ? YES : NO;
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ") || NONE;
  return typeof value === "string" ? value.replaceAll("_", " ") : JSON.stringify(value);
}
