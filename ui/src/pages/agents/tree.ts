// The tree of agents, parents before their children.
import type { Schemas } from "../../api/client";

type Agent = Pick<Schemas["Agent"], "id" | "parent_id" | "name">;

export interface TreeRow<A extends Agent> {
  agent: A;
  depth: number;
}

/** Sort parents before their children, by name. An agent with an unknown parent or a cyclic ancestry is a root. */
export function treeRows<A extends Agent>(agents: readonly A[]): TreeRow<A>[] {
  const sorted = [...agents].sort(
    (one, other) => titleOf(one).localeCompare(titleOf(other)) || one.id.localeCompare(other.id),
  );
  const ids = new Set(agents.map((agent) => agent.id));
  const below = new Map<string, A[]>();
  for (const agent of sorted) {
    const parent = agent.parent_id !== null && ids.has(agent.parent_id) ? agent.parent_id : "";
    below.set(parent, [...(below.get(parent) ?? []), agent]);
  }
  const rows: TreeRow<A>[] = [];
  const seen = new Set<string>();
  const visit = (agent: A, depth: number): void => {
    if (seen.has(agent.id)) return;
    seen.add(agent.id);
    rows.push({ agent, depth });
    for (const child of below.get(agent.id) ?? []) visit(child, depth + 1);
  };
  for (const agent of below.get("") ?? []) visit(agent, 0);
  for (const agent of sorted) visit(agent, 0);
  return rows;
}

export function titleOf(agent: Pick<Agent, "id" | "name">): string {
  return agent.name || agent.id;
}

/** Return the lead of a team (default: the first member), or null with another strategy. */
export function leadOf(team: Pick<Schemas["Team"], "strategy" | "lead" | "members">): string | null {
  return team.strategy === "lead" ? (team.lead ?? team.members[0] ?? null) : null;
}
