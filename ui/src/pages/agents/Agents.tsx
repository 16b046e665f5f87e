// Agents as a tree, teams, and assignments of workflows.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { usePages } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { Button } from "../../parts/Button";
import { Page } from "../../parts/Page";
import { PagedTable } from "../../parts/PagedTable";
import { Empty } from "../../parts/Shown";
import { Tabs } from "../../parts/Tabs";
import { When } from "../../parts/When";
import { AgentForm } from "./AgentForm";
import { agentLook } from "./looks";
import { TeamForm } from "./TeamForm";
import { leadOf, titleOf, treeRows } from "./tree";
import "./agents.css";
import { ASSIGNEE_TYPES } from "../../words";
import { protocolText, SELF_SCHEDULED, STRATEGIES } from "../../words/agents";

const TABS = [
  { id: "agents", text: "Agents" },
  { id: "teams", text: "Teams" },
  { id: "assignments", text: "Assignments" },
] as const;

export default function Agents() {
  const writes = useMay("write");
  const navigate = useNavigate();
  const { tab }: { tab?: unknown } = useSearch({ strict: false });
  const chosen = TABS.find((each) => each.id === tab)?.id ?? "agents";
  const [creating, setCreating] = useState<"agent" | "team" | null>(null);
  return (
    <Page
      title="Agents and Teams"
      about="AI agents, teams and their workflow assignments."
      actions={
        writes ? (
          <>
            <Button onClick={() => setCreating("team")}>Create team</Button>
            <Button kind="primary" onClick={() => setCreating("agent")}>
              Create agent
            </Button>
          </>
        ) : null
      }
    >
      <Tabs
        label="Agents and teams"
        tabs={TABS}
        chosen={chosen}
        onChoose={(id) => void navigate({ to: "/agents", search: { tab: id } as never, replace: true })}
      >
        {chosen === "agents" ? <AgentTree /> : chosen === "teams" ? <Teams /> : <Assignments />}
      </Tabs>
      {creating === "agent" ? <AgentForm onClose={() => setCreating(null)} /> : null}
      {creating === "team" ? <TeamForm onClose={() => setCreating(null)} /> : null}
    </Page>
  );
}

function AgentTree() {
  const agents = usePages("/api/agents", { query: { page_size: 200 } });
  return (
    <PagedTable
      of={agents}
      rowsOf={(pages) => treeRows(pages.flatMap((page) => page.agents))}
      heads={["Agent", "Health", { text: "Concurrency", number: true }, "Protocol", "Last seen"]}
      empty={
        <Empty title="No agents yet">
          <p>
            An agent answers prompts over A2A. Create an agent, then assign schedules, workflow steps and teams to it.
          </p>
        </Empty>
      }
    >
      {({ agent, depth }) => (
        <tr key={agent.id} data-row>
          <td>
            <div className="tree-cell" style={{ paddingLeft: Math.min(depth, 8) * 20 }}>
              {depth > 0 ? (
                <span aria-hidden="true" className="muted">
                  └
                </span>
              ) : null}
              <Link to="/agents/$agentId" params={{ agentId: agent.id }}>
                <bdi>{titleOf(agent)}</bdi>
              </Link>
              {agent.native_scheduler ? <span className="badge tone-hold">{SELF_SCHEDULED}</span> : null}
            </div>
            {agent.name ? (
              <div className="small muted mono" style={{ paddingLeft: Math.min(depth, 8) * 20 }}>
                {agent.id}
              </div>
            ) : null}
          </td>
          <td>
            <Badge look={agentLook(agent)} />
          </td>
          <td className="number">{agent.capacity}</td>
          <td>{agent.card?.protocol ? `A2A ${agent.card.protocol}` : protocolText(agent.protocol)}</td>
          <td>
            <When at={agent.last_seen_at} brief none="Never" />
          </td>
        </tr>
      )}
    </PagedTable>
  );
}

function Teams() {
  const teams = usePages("/api/teams", { query: { page_size: 200 } });
  return (
    <PagedTable
      of={teams}
      rowsOf={(pages) => pages.flatMap((page) => page.teams)}
      heads={["Team", "Strategy", "Members"]}
      empty={
        <Empty title="No teams yet">
          <p>
            A team is a group of agents. Each run goes to the next member (round robin) or to the lead. Schedules and
            workflows can be assigned to a team.
          </p>
        </Empty>
      }
    >
      {(team) => (
        <tr key={team.team_id} data-row>
          <td>
            <Link to="/teams/$teamId" params={{ teamId: team.team_id }}>
              <bdi>{team.name || team.team_id}</bdi>
            </Link>
          </td>
          <td>{team.strategy === "lead" ? `${STRATEGIES.lead}: ${leadOf(team) ?? "—"}` : STRATEGIES[team.strategy]}</td>
          <td>
            <bdi>{team.members.join(", ") || "—"}</bdi>
          </td>
        </tr>
      )}
    </PagedTable>
  );
}

function Assignments() {
  const assignments = usePages("/api/assignments", { query: { page_size: 200 } });
  return (
    <PagedTable
      of={assignments}
      rowsOf={(pages) => pages.flatMap((page) => page.assignments)}
      heads={["Workflow", "Assignee", "Policies", "Assignment ID"]}
      empty={
        <Empty title="No assignments yet">
          <p>
            An assignment gives a workflow an agent or a team and sets its policies: approval, retry, failure, queue.
          </p>
        </Empty>
      }
    >
      {(each) => (
        <tr key={each.assignment_id} data-row>
          <td>
            <Link to="/workflows/$workflowId" params={{ workflowId: each.workflow_id }}>
              <bdi>{each.workflow_id}</bdi>
            </Link>
          </td>
          <td>
            <Assignee type={each.assignee_type} id={each.assignee_id} />
          </td>
          <td>
            {(["approval_policy", "retry_policy", "failure_policy", "queue_policy"] as const)
              .filter((name) => each[name] != null)
              .map((name) => name.replace("_policy", ""))
              .join(", ") || "—"}
          </td>
          <td className="mono small">{each.assignment_id}</td>
        </tr>
      )}
    </PagedTable>
  );
}

function Assignee({ type, id }: { type: "agent" | "team"; id: string }) {
  return type === "team" ? (
    <Link to="/teams/$teamId" params={{ teamId: id }}>
      {ASSIGNEE_TYPES.team} <bdi>{id}</bdi>
    </Link>
  ) : (
    <Link to="/agents/$agentId" params={{ agentId: id }}>
      {ASSIGNEE_TYPES.agent} <bdi>{id}</bdi>
    </Link>
  );
}
