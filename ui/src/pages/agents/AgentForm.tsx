// Create an agent, or patch the fields that the form shows.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { CheckField, SelectField, TextArea, TextField } from "../../parts/Field";
import { useSay } from "../../parts/Toasts";
import { CREATE, SAVE, OPTIONAL, created, saved } from "../../words";
import { CONTEXT_CHOICES, PROTOCOLS, SELF_SCHEDULED } from "../../words/agents";

const SCHEDULES = [
  ["own", "Created through its workspace"],
  ["all", "All in its workspace"],
  ["none", "None"],
] as const;

interface Props {
  agent?: Schemas["Agent"];
  etag?: string | null;
  onClose: () => void;
}

export function AgentForm({ agent, etag, onClose }: Props) {
  const create = useWrite("post", "/api/agents");
  const change = useWrite("patch", "/api/agents/{agent_id}");
  const navigate = useNavigate();
  const say = useSay();
  const [id, setId] = useState(agent?.id ?? "");
  const [name, setName] = useState(agent?.name ?? "");
  const [url, setUrl] = useState(agent?.url ?? "");
  const [parent, setParent] = useState(agent?.parent_id ?? "");
  const [capacity, setCapacity] = useState(String(agent?.capacity ?? 1));
  const [protocol, setProtocol] = useState(agent?.protocol ?? "auto");
  const [context, setContext] = useState(agent?.context ?? "fresh");
  const [hosts, setHosts] = useState(agent?.allowed_hosts.join("\n") ?? "");
  const [token, setToken] = useState("");
  const [schedules, setSchedules] = useState(agent?.schedules ?? "own");
  const [native, setNative] = useState(agent?.native_scheduler ?? false);
  const [begun] = useState(etag); // do not overwrite a concurrent change
  const failure = create.error ?? change.error;
  const run = () => {
    const body = {
      id,
      name,
      url: url || null,
      parent_id: parent || null,
      capacity: Number(capacity),
      protocol,
      context,
      allowed_hosts: hosts.split(/[\s,]+/).filter(Boolean),
      native_scheduler: native,
      schedules,
      ...(token ? { token } : {}),
    };
    const done = {
      onSuccess: () => {
        say(agent ? saved(id) : created(id));
        onClose();
        if (!agent) void navigate({ to: "/agents/$agentId", params: { agentId: id } });
      },
    };
    if (agent) change.mutate({ path: { agent_id: agent.id }, body, extra: { ifMatch: begun ?? undefined } }, done);
    else create.mutate({ body }, done);
  };
  return (
    <Dialog
      title={agent ? `Edit ${agent.id}` : "Create agent"}
      onClose={onClose}
      failure={failure}
      action={{
        text: agent ? SAVE : CREATE,
        run,
        busy: create.isPending || change.isPending,
        disabled: id === "",
      }}
    >
      {agent ? null : (
        <TextField
          label="ID"
          value={id}
          onChange={(event) => setId(event.target.value)}
          hint="Unique in the namespace. Schedules and workflows refer to the agent by its ID."
          required
        />
      )}
      <TextField label="Display name" value={name} onChange={(event) => setName(event.target.value)} hint={OPTIONAL} />
      <TextField
        label="URL"
        value={url}
        onChange={(event) => setUrl(event.target.value)}
        hint="A2A endpoint. Leave empty if the agent pulls its runs."
        placeholder="https://agent.example/"
      />
      <TextField
        label="Concurrency"
        type="number"
        min={1}
        value={capacity}
        onChange={(event) => setCapacity(event.target.value)}
        hint="Maximum active runs (default 1)"
      />
      <TextField label="Parent agent" value={parent} onChange={(event) => setParent(event.target.value)} />
      <SelectField
        label="Protocol"
        choices={PROTOCOLS}
        value={protocol}
        onChange={(event) => setProtocol(event.target.value as typeof protocol)}
      />
      <SelectField
        label="Conversations"
        choices={CONTEXT_CHOICES}
        value={context}
        onChange={(event) => setContext(event.target.value as typeof context)}
      />
      <TextField
        label="Outbound token"
        type="password"
        autoComplete="new-password"
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={`Sent to the agent with each prompt. ${agent?.has_token ? "Enter a new token to replace the stored one." : "No token is stored."}`}
      />
      <TextArea
        label="Additional hosts"
        rows={2}
        value={hosts}
        onChange={(event) => setHosts(event.target.value)}
        hint="Other hosts that the agent card may point to, one per line"
      />
      <SelectField
        label="Schedules that its token may edit"
        choices={SCHEDULES}
        value={schedules}
        onChange={(event) => setSchedules(event.target.value as typeof schedules)}
      />
      <CheckField
        label={`${SELF_SCHEDULED} (its schedules do not fire here)`}
        checked={native}
        onChange={(event) => setNative(event.target.checked)}
      />
    </Dialog>
  );
}
