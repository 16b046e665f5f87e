// Create a team, or patch the fields that the form shows.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { SelectField, TextArea, TextField } from "../../parts/Field";
import { useSay } from "../../parts/Toasts";
import { CREATE, SAVE, OPTIONAL, created, saved } from "../../words";
import { STRATEGY_CHOICES } from "../../words/agents";

interface Props {
  team?: Schemas["Team"];
  etag?: string | null;
  onClose: () => void;
}

export function TeamForm({ team, etag, onClose }: Props) {
  const create = useWrite("post", "/api/teams");
  const change = useWrite("patch", "/api/teams/{team_id}");
  const navigate = useNavigate();
  const say = useSay();
  const [id, setId] = useState(team?.team_id ?? "");
  const [name, setName] = useState(team?.name ?? "");
  const [members, setMembers] = useState(team?.members.join("\n") ?? "");
  const [strategy, setStrategy] = useState(team?.strategy ?? "round_robin");
  const [lead, setLead] = useState(team?.lead ?? "");
  const [begun] = useState(etag); // do not overwrite a concurrent change
  const run = () => {
    const body = {
      team_id: id,
      name,
      members: members.split(/[\s,]+/).filter(Boolean),
      strategy,
      lead: strategy === "lead" && lead !== "" ? lead : null,
    };
    const done = {
      onSuccess: () => {
        say(team ? saved(id) : created(id));
        onClose();
        if (!team) void navigate({ to: "/teams/$teamId", params: { teamId: id } });
      },
    };
    if (team) change.mutate({ path: { team_id: team.team_id }, body, extra: { ifMatch: begun ?? undefined } }, done);
    else create.mutate({ body }, done);
  };
  return (
    <Dialog
      title={team ? `Edit ${team.team_id}` : "Create team"}
      onClose={onClose}
      failure={create.error ?? change.error}
      action={{ text: team ? SAVE : CREATE, run, busy: create.isPending || change.isPending, disabled: id === "" }}
    >
      {team ? null : <TextField label="ID" value={id} onChange={(event) => setId(event.target.value)} required />}
      <TextField label="Display name" value={name} onChange={(event) => setName(event.target.value)} hint={OPTIONAL} />
      <TextArea
        label="Members"
        rows={4}
        value={members}
        onChange={(event) => setMembers(event.target.value)}
        hint="One agent ID per line"
      />
      <SelectField
        label="Strategy"
        choices={STRATEGY_CHOICES}
        value={strategy}
        onChange={(event) => setStrategy(event.target.value as typeof strategy)}
      />
      {strategy === "lead" ? (
        <TextField
          label="Lead"
          value={lead}
          onChange={(event) => setLead(event.target.value)}
          hint="Default: the first member"
        />
      ) : null}
    </Dialog>
  );
}
