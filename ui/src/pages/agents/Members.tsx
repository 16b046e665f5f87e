// The agents of a team, their health and their active runs.
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { Card } from "../../parts/Page";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { Capacity } from "./Capacity";
import { agentLook } from "./looks";
import { leadOf } from "./tree";
import "./agents.css";
import { STRATEGIES } from "../../words/agents";

// Only the request for one agent returns its active runs. Further members of a larger team are shown as links.
const MOST_ASKED = 50;
const EVERY_SECONDS = 30;

export function Members({ team }: { team: Schemas["Team"] }) {
  return (
    <Card title="Members">
      <Table heads={["Agent", "Health", "Active runs", "Last seen"]}>
        {team.members.map((member, place) => (
          <Member key={member} id={member} leads={member === leadOf(team)} asked={place < MOST_ASKED} />
        ))}
      </Table>
    </Card>
  );
}

function Member({ id, leads, asked }: { id: string; leads: boolean; asked: boolean }) {
  const { data: agent } = useRead(
    "/api/agents/{agent_id}",
    { path: { agent_id: id } },
    { live: false, enabled: asked, everySeconds: EVERY_SECONDS },
  );
  return (
    <tr data-row>
      <td>
        <Link to="/agents/$agentId" params={{ agentId: id }}>
          <bdi>{agent?.name || id}</bdi>
        </Link>{" "}
        {leads ? <span className="badge tone-accent">{STRATEGIES.lead}</span> : null}
      </td>
      <td>{agent ? <Badge look={agentLook(agent)} /> : "—"}</td>
      <td>{agent ? <Capacity active={agent.active_runs} capacity={agent.capacity} /> : "—"}</td>
      <td>{agent ? <When at={agent.last_seen_at} brief none="Never" /> : "—"}</td>
    </tr>
  );
}
