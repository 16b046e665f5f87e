// Creates a team, or changes the fields that the form shows; a patch leaves the others as they are.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { SelectField, TextArea, TextField } from "../../parts/Field";
import { useSay } from "../../parts/Toasts";

const STRATEGIES = [
  ["round_robin", "in turn"],
  ["lead", "by the lead"],
] as const;

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
  const [begun] = useState(etag); // what somebody else saves meanwhile is not overwritten
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
        say(team ? `${id} is changed` : `${id} is there`);
        onClose();
        if (!team) void navigate({ to: "/teams/$teamId", params: { teamId: id } });
      },
    };
    if (team) change.mutate({ path: { team_id: team.team_id }, body, extra: { ifMatch: begun ?? undefined } }, done);
    else create.mutate({ body }, done);
  };
  return (
    <Dialog
      title={team ? `Change ${team.team_id}` : "New team"}
      onClose={onClose}
      failure={create.error ?? change.error}
      action={{ text: team ? "Save" : "Make it", run, busy: create.isPending || change.isPending, disabled: id === "" }}
    >
      {team ? null : <TextField label="Id" value={id} onChange={(event) => setId(event.target.value)} required />}
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
      <TextArea
        label="Members"
        rows={4}
        value={members}
        onChange={(event) => setMembers(event.target.value)}
        hint="ids of agents, one a line"
      />
      <SelectField
        label="Work is given out"
        choices={STRATEGIES}
        value={strategy}
        onChange={(event) => setStrategy(event.target.value as typeof strategy)}
      />
      {strategy === "lead" ? (
        <TextField
          label="Lead"
          value={lead}
          onChange={(event) => setLead(event.target.value)}
          hint="empty = the first member"
        />
      ) : null}
    </Dialog>
  );
}
