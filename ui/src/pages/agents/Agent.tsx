// One agent: its health, load and scheduled prompts.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Answer, type Schemas } from "../../api/client";
import { useTagged, useWrite, type Failure } from "../../api/hooks";
import { useMay, useNamespace } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { schedulesText } from "../../parts/bulk";
import { Button } from "../../parts/Button";
import { useCountField } from "../../parts/CountField";
import { DeleteDialog } from "../../parts/DeleteDialog";
import { Dialog } from "../../parts/Dialog";
import { CheckField, TextField } from "../../parts/Field";
import { Card, Facts, Page } from "../../parts/Page";
import { FailureNote, Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import { IssuedSecret } from "../access/IssuedSecret";
import { AgentForm } from "./AgentForm";
import { Capacity } from "./Capacity";
import { agentLook } from "./looks";
import { OwnPolicies } from "./OwnPolicies";
import { Prompts } from "./Prompts";
import { titleOf } from "./tree";
import "./agents.css";
import { CREATE, DELETE, EDIT, NONE } from "../../words";
import { SELF_SCHEDULED, CONTEXTS } from "../../words/agents";

type Asking = "change" | "delete" | "token" | null;

export default function Agent() {
  const { agentId }: { agentId: string } = useParams({ strict: false });
  const [writes, administers] = [useMay("write"), useMay("administer")];
  const found = useTagged("/api/agents/{agent_id}", { path: { agent_id: agentId } });
  const [asking, setAsking] = useState<Asking>(null);
  return (
    <Shown
      of={found}
      around={(note) => (
        <Page title={agentId} above={<Link to="/agents">← Agents</Link>}>
          {note}
        </Page>
      )}
    >
      {({ answer: agent, etag }) => (
        <Page
          title={titleOf(agent)}
          above={<Link to="/agents">← Agents</Link>}
          about={
            <div className="row">
              <Badge look={agentLook(agent)} />
              {agent.native_scheduler ? <span className="badge tone-hold">{SELF_SCHEDULED}</span> : null}
            </div>
          }
          actions={
            writes ? (
              <>
                {administers ? <Button onClick={() => setAsking("token")}>Create token</Button> : null}
                <Button onClick={() => setAsking("change")}>{EDIT}</Button>
                <Button kind="danger" onClick={() => setAsking("delete")}>
                  {DELETE}
                </Button>
              </>
            ) : null
          }
        >
          <Prompts agent={agent} />
          <div className="columns">
            <About agent={agent} />
            <Answers agent={agent} />
            <OwnPolicies policies={agent.policies} />
          </div>
          {asking === "change" ? <AgentForm agent={agent} etag={etag} onClose={() => setAsking(null)} /> : null}
          {asking === "delete" ? <DeleteAgent agentId={agent.id} onClose={() => setAsking(null)} /> : null}
          {asking === "token" ? <AgentToken agentId={agent.id} onClose={() => setAsking(null)} /> : null}
        </Page>
      )}
    </Shown>
  );
}

function About({ agent }: { agent: Schemas["Agent"] }) {
  return (
    <Card title="Details">
      <Facts
        of={[
          ["ID", <code key="id">{agent.id}</code>],
          ["URL", agent.url ? <code key="url">{agent.url}</code> : "None (pull)"],
          ["Active runs", <Capacity key="active" active={agent.active_runs} capacity={agent.capacity} />],
          ["Parent", agent.parent_id ? <AgentLink key="parent" id={agent.parent_id} /> : "—"],
          ["Children", agent.children?.length ? agent.children.map((id) => <AgentLink key={id} id={id} />) : "—"],
          ["Conversations", CONTEXTS[agent.context]],
          ["Outbound token", agent.has_token ? "Stored (encrypted)" : NONE],
          ["Bundle", agent.bundle ?? "—"],
          ["Updated", <When key="updated" at={agent.updated_at} />],
        ]}
      />
    </Card>
  );
}

function AgentLink({ id }: { id: string }) {
  return (
    <>
      <Link to="/agents/$agentId" params={{ agentId: id }}>
        <bdi>{id}</bdi>
      </Link>{" "}
    </>
  );
}

function Answers({ agent }: { agent: Schemas["Agent"] }) {
  const operates = useMay("operate");
  const check = useWrite("post", "/api/agents/{agent_id}/check");
  const result = check.data;
  return (
    <Card
      title="Health"
      actions={
        operates && agent.url !== null ? (
          <Button small busy={check.isPending} onClick={() => check.mutate({ path: { agent_id: agent.id } })}>
            Check now
          </Button>
        ) : null
      }
    >
      <div className="stack">
        <Facts
          of={[
            ["Last seen", <When key="seen" at={agent.last_seen_at} none="Never" />],
            ["Agent card", agent.card ? `${agent.card.name} ${agent.card.version ?? ""}` : NONE],
            ["Card requested", <When key="requested" at={agent.card_at} none="Never" />],
            ...(agent.card_error ? ([["Card error", agent.card_error]] as const) : []),
          ]}
        />
        {check.error ? <FailureNote failure={check.error} /> : null}
        {result ? (
          <div className={`note tone-${result.reachable ? "ok" : "bad"}`} role="status">
            <div className="stack">
              <div>
                {result.reachable
                  ? result.dialect
                    ? `Reachable over A2A ${result.dialect}`
                    : "Reachable"
                  : "Unreachable"}
              </div>
              {result.error ? <div>{result.error}</div> : null}
              {result.interfaces.map((each) => (
                <div key={each.url} className="small">
                  <code>{each.url}</code>{" "}
                  {each.used ? "used" : `not used: ${each.why_not ?? "another interface is preferred"}`}
                </div>
              ))}
            </div>
          </div>
        ) : null}
      </div>
    </Card>
  );
}

function DeleteAgent({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const remove = useWrite("delete", "/api/agents/{agent_id}");
  const navigate = useNavigate();
  const [purge, setPurge] = useState(false);
  const plan = usePurgePlan(agentId, purge);
  const count = plan.data?.deleted_schedules.length ?? 0;
  const typed = useCountField(purge ? count : 0);
  return (
    <DeleteDialog
      name={agentId}
      remove={remove}
      given={{ path: { agent_id: agentId }, query: { purge } }}
      onGone={() => void navigate({ to: "/agents" })}
      onClose={onClose}
      disabled={purge && (plan.data === undefined || !typed.matches)}
      text={purge && count > 0 ? `Delete agent and ${schedulesText(count)}` : DELETE}
    >
      <p>Its schedules and those of its child agents are paused.</p>
      <CheckField
        label="Delete these schedules instead"
        checked={purge}
        onChange={(event) => setPurge(event.target.checked)}
      />
      {purge && plan.error ? <FailureNote failure={plan.error} again={() => void plan.refetch()} /> : null}
      {typed.field}
    </DeleteDialog>
  );
}

/** Preview the schedules that a deletion with `purge` deletes. */
function usePurgePlan(agentId: string, enabled: boolean) {
  const namespace = useNamespace();
  const path = { agent_id: agentId };
  return useQuery<Answer<"/api/agents/{agent_id}", "delete">, Failure>({
    queryKey: [namespace, "/api/agents/{agent_id}", { path }, "purge plan"],
    queryFn: async ({ signal }) => {
      const given = { path, query: { purge: true, force: true, dry_run: true } };
      return (await ask("delete", "/api/agents/{agent_id}", given, { namespace, signal })).answer;
    },
    enabled,
    gcTime: 0,
  });
}

function AgentToken({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const issue = useWrite("post", "/api/agents/{agent_id}/tokens");
  const [name, setName] = useState("");
  if (issue.data) return <IssuedSecret token={issue.data} onClose={onClose} />;
  return (
    <Dialog
      title={`Create token for ${agentId}`}
      onClose={onClose}
      failure={issue.error}
      action={{
        text: CREATE,
        busy: issue.isPending,
        run: () => issue.mutate({ path: { agent_id: agentId }, body: name ? { name } : {} }),
      }}
    >
      <p>With this token the agent manages the schedules of its workspace and processes its own runs.</p>
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        hint="Auto-generated if empty"
      />
    </Dialog>
  );
}
