// The ID of an agent or a team, with those that exist as suggestions.
import { useId } from "react";
import type { Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { Text } from "./fields";

interface Props {
  path: readonly string[];
  label: string;
  hint?: string;
  types: readonly Schemas["AssigneeType"][];
}

export function AssigneeText({ path, label, hint, types }: Props) {
  const id = useId();
  const query = { query: { page_size: 200 } };
  const agents = useRead("/api/agents", query, { live: false, enabled: types.includes("agent") });
  const teams = useRead("/api/teams", query, { live: false, enabled: types.includes("team") });
  const known = [
    ...(types.includes("agent") ? (agents.data?.agents ?? []) : []),
    ...(types.includes("team") ? (teams.data?.teams ?? []).map((team) => ({ id: team.team_id, name: team.name })) : []),
  ];
  return (
    <>
      <Text path={path} label={label} hint={hint} list={id} mono required />
      <datalist id={id}>
        {known.map((each) => (
          <option key={each.id} value={each.id}>
            {each.name}
          </option>
        ))}
      </datalist>
    </>
  );
}
