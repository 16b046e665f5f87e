// The health of an agent.
import type { Schemas } from "../../api/client";
import type { Look } from "../../marks/outcomes";

export function agentLook(agent: Pick<Schemas["Agent"], "url" | "card" | "card_error" | "last_seen_at">): Look {
  if (agent.url === null) return { word: "Pull", tone: "quiet", shape: "ring" };
  if (agent.card_error !== null) return { word: "Card error", tone: "warn", shape: "triangle" };
  if (agent.card !== null || agent.last_seen_at !== null) return { word: "Reachable", tone: "ok", shape: "disc" };
  return { word: "Not checked", tone: "quiet", shape: "ring" };
}
