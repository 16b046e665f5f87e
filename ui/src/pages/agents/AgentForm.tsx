// Creates an agent, or changes the fields that the form shows; a patch leaves the others as they are.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { CheckField, SelectField, TextArea, TextField } from "../../parts/Field";
import { useSay } from "../../parts/Toasts";

const PROTOCOLS = [
  ["auto", "whichever answers"],
  ["1.0", "A2A 1.0"],
  ["0.3", "A2A 0.3"],
] as const;
const CONTEXTS = [
  ["fresh", "each run is a conversation of its own"],
  ["schedule", "all runs of a schedule are one conversation"],
] as const;

const SCHEDULES = [
  ["own", "Created through its workspace"],
  ["all", "All of its workspace"],
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
  const [begun] = useState(etag); // what somebody else saves meanwhile is not overwritten
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
        say(agent ? `${id} is changed` : `${id} is there`);
        onClose();
        if (!agent) void navigate({ to: "/agents/$agentId", params: { agentId: id } });
      },
    };
    if (agent) change.mutate({ path: { agent_id: agent.id }, body, extra: { ifMatch: begun ?? undefined } }, done);
    else create.mutate({ body }, done);
  };
  return (
    <Dialog
      title={agent ? `Change ${agent.id}` : "New agent"}
      onClose={onClose}
      failure={failure}
      action={{
        text: agent ? "Save" : "Make it",
        run,
        busy: create.isPending || change.isPending,
        disabled: id === "",
      }}
    >
      {agent ? null : (
        <TextField
          label="Id"
          value={id}
          onChange={(event) => setId(event.target.value)}
          hint="its name in the namespace; schedules and workflows use it"
          required
        />
      )}
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} hint="for people" />
      <TextField
        label="Address"
        value={url}
        onChange={(event) => setUrl(event.target.value)}
        hint="where it is spoken to; without one it fetches its work"
        placeholder="https://agent.example/"
      />
      <TextField
        label="At the same time"
        type="number"
        min={1}
        value={capacity}
        onChange={(event) => setCapacity(event.target.value)}
        hint="prompts that it is given at once"
      />
      <TextField label="Agent above it" value={parent} onChange={(event) => setParent(event.target.value)} />
      <SelectField
        label="Speaks"
        choices={PROTOCOLS}
        value={protocol}
        onChange={(event) => setProtocol(event.target.value as typeof protocol)}
      />
      <SelectField
        label="Conversations"
        choices={CONTEXTS}
        value={context}
        onChange={(event) => setContext(event.target.value as typeof context)}
      />
      <TextField
        label="Token sent to it"
        type="password"
        autoComplete="new-password"
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={agent?.has_token ? "one is kept; a new one replaces it" : "none is kept"}
      />
      <TextArea
        label="Other hosts its card may point to"
        rows={2}
        value={hosts}
        onChange={(event) => setHosts(event.target.value)}
      />
      <SelectField
        label="Schedules its token may change"
        choices={SCHEDULES}
        value={schedules}
        onChange={(event) => setSchedules(event.target.value as typeof schedules)}
      />
      <CheckField
        label="It keeps its own time: our schedules for it do not fire"
        checked={native}
        onChange={(event) => setNative(event.target.checked)}
      />
    </Dialog>
  );
}
