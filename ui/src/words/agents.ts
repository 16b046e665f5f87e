// The texts about agents and teams.
import type { Schemas } from "../api/client";

export const SELF_SCHEDULED = "Self-scheduled";

export const PROTOCOLS = [
  ["auto", "Auto-detect"],
  ["1.0", "A2A 1.0"],
  ["0.3", "A2A 0.3"],
] as const;

export function protocolText(protocol: string): string {
  return PROTOCOLS.find(([value]) => value === protocol)?.[1] ?? protocol;
}

/** The conversation in which an agent receives its prompts. */
export const CONTEXTS: Readonly<Record<Schemas["AgentContext"], string>> = {
  fresh: "New for each run",
  schedule: "One per schedule",
};
export const CONTEXT_CHOICES = Object.entries(CONTEXTS);

/** The member of a team that receives a run. */
export const STRATEGIES: Readonly<Record<Schemas["TeamStrategy"], string>> = {
  round_robin: "Round robin",
  lead: "Lead",
};
export const STRATEGY_CHOICES = Object.entries(STRATEGIES);
