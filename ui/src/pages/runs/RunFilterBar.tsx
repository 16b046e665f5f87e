// The filters of the list of runs. Text filters apply on submit.
import { useState, type FormEvent } from "react";
import { Button } from "../../parts/Button";
import { CheckField, SelectField, TextField } from "../../parts/Field";
import { filtersOf, isFiltered, ORIGIN_CHOICES, STATE_CHOICES, type RunFilters } from "./filters";

const TEXTS = [
  ["schedule", "Schedule", "Schedule ID"],
  ["workflow", "Workflow", "Workflow ID"],
  ["assignee", "Assignee", "Agent or team"],
  ["queue", "Queue", "Queue"],
  ["since", "Ended since", "2026-03-01T00:00:00Z"],
] as const;

/** Its key resets it when the URL changes. */
export function RunFilterBar({ filters, onChange }: { filters: RunFilters; onChange: (next: RunFilters) => void }) {
  const [draft, setDraft] = useState(filters);
  const send = (event: FormEvent) => {
    event.preventDefault();
    onChange(trimmed(draft));
  };
  return (
    <form className="filters" role="search" aria-label="Runs" onSubmit={send}>
      <SelectField
        bare
        label="State"
        choices={STATE_CHOICES}
        value={draft.state}
        onChange={(event) => onChange({ ...trimmed(draft), state: event.target.value })}
      />
      <SelectField
        bare
        label="Origin"
        choices={ORIGIN_CHOICES}
        value={draft.origin}
        onChange={(event) => onChange({ ...trimmed(draft), origin: event.target.value })}
      />
      {TEXTS.map(([name, label, hint]) => (
        <TextField
          key={name}
          bare
          label={label}
          placeholder={hint}
          value={draft[name]}
          maxLength={500}
          onChange={(event) => setDraft({ ...draft, [name]: event.target.value })}
        />
      ))}
      <CheckField
        label="Include steps"
        checked={draft.steps}
        onChange={(event) => onChange({ ...trimmed(draft), steps: event.target.checked })}
      />
      <Button type="submit">Apply filters</Button>
      {isFiltered(filters) ? (
        <Button kind="quiet" onClick={() => onChange(filtersOf({}))}>
          Clear filters
        </Button>
      ) : null}
    </form>
  );
}

function trimmed(filters: RunFilters): RunFilters {
  return filtersOf(
    Object.fromEntries(
      Object.entries(filters).map(([name, value]) => [name, typeof value === "string" ? value.trim() : value]),
    ),
  );
}
