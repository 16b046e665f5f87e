// How an agent is doing, as far as its last answers tell.
import type { Schemas } from "../../api/client";
import type { Look } from "../../marks/outcomes";

export function agentLook(agent: Pick<Schemas["Agent"], "url" | "card" | "card_error" | "last_seen_at">): Look {
  if (agent.url === null) return { word: "fetches its work", tone: "quiet", shape: "ring" };
  if (agent.card_error !== null) return { word: "no card", tone: "warn", shape: "triangle" };
  if (agent.card !== null || agent.last_seen_at !== null) return { word: "reachable", tone: "ok", shape: "disc" };
  return { word: "never asked", tone: "quiet", shape: "ring" };
}
