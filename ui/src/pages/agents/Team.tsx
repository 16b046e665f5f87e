// One team: its members, strategy and policies.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTagged, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { DeleteDialog } from "../../parts/DeleteDialog";
import { Card, Facts, Page } from "../../parts/Page";
import { ScheduleList } from "../../parts/ScheduleList";
import { Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import { OwnPolicies } from "./OwnPolicies";
import { TeamForm } from "./TeamForm";
import { Members } from "./Members";
import { DELETE, EDIT } from "../../words";
import { STRATEGIES } from "../../words/agents";

export default function Team() {
  const { teamId }: { teamId: string } = useParams({ strict: false });
  const writes = useMay("write");
  const found = useTagged("/api/teams/{team_id}", { path: { team_id: teamId } });
  const [asking, setAsking] = useState<"change" | "delete" | null>(null);
  return (
    <Shown
      of={found}
      around={(note) => (
        <Page
          title={teamId}
          above={
            <Link to="/agents" search={{ tab: "teams" } as never}>
              ← Teams
            </Link>
          }
        >
          {note}
        </Page>
      )}
    >
      {({ answer: team, etag }) => (
        <Page
          title={team.name || team.team_id}
          above={
            <Link to="/agents" search={{ tab: "teams" } as never}>
              ← Teams
            </Link>
          }
          actions={
            writes ? (
              <>
                <Button onClick={() => setAsking("change")}>{EDIT}</Button>
                <Button kind="danger" onClick={() => setAsking("delete")}>
                  {DELETE}
                </Button>
              </>
            ) : null
          }
        >
          <Members team={team} />
          <div className="columns">
            <Card title="Schedules">
              <ScheduleList
                query={{ assignee: team.team_id, assignee_type: "team" }}
                empty={
                  <>
                    None. Assign a schedule to the team with <code>{`"assignee_type": "team"`}</code> and{" "}
                    <code>{`"assignee_id": "${team.team_id}"`}</code>.
                  </>
                }
              />
            </Card>
            <Card title="Details">
              <Facts
                of={[
                  ["ID", <code key="id">{team.team_id}</code>],
                  ["Strategy", STRATEGIES[team.strategy]],
                  ["Bundle", team.bundle ?? "—"],
                  ["Updated", <When key="updated" at={team.updated_at} />],
                ]}
              />
            </Card>
            <OwnPolicies policies={team.policies} />
          </div>
          {asking === "change" ? <TeamForm team={team} etag={etag} onClose={() => setAsking(null)} /> : null}
          {asking === "delete" ? <DeleteTeam teamId={team.team_id} onClose={() => setAsking(null)} /> : null}
        </Page>
      )}
    </Shown>
  );
}

function DeleteTeam({ teamId, onClose }: { teamId: string; onClose: () => void }) {
  const remove = useWrite("delete", "/api/teams/{team_id}");
  const navigate = useNavigate();
  return (
    <DeleteDialog
      name={teamId}
      remove={remove}
      given={{ path: { team_id: teamId } }}
      onGone={() => void navigate({ to: "/agents", search: { tab: "teams" } as never })}
      onClose={onClose}
    >
      <p>The agents of the team are not deleted. New work that refers to the team is rejected.</p>
    </DeleteDialog>
  );
}
