// The filters of approval requests; text filters apply on submit.
import { useState, type FormEvent } from "react";
import { Button } from "../../parts/Button";
import { CheckField, SelectField, TextField } from "../../parts/Field";
import { filtersOf, isFiltered, STATUS_CHOICES, type ApprovalFilters } from "./filters";

/** Recreated by its key when the address changes. */
export function ApprovalFilterBar({
  filters,
  onChange,
}: {
  filters: ApprovalFilters;
  onChange: (next: ApprovalFilters) => void;
}) {
  const [draft, setDraft] = useState(filters);
  const sent = () => ({ ...draft, gate: draft.gate.trim(), schedule: draft.schedule.trim() });
  const send = (event: FormEvent) => {
    event.preventDefault();
    onChange(sent());
  };
  return (
    <form className="approval-filters" role="search" aria-label="Approvals" onSubmit={send}>
      <SelectField
        bare
        label="Status"
        choices={STATUS_CHOICES}
        value={draft.status}
        onChange={(event) => onChange({ ...sent(), status: event.target.value })}
      />
      <TextField
        bare
        label="Schedule"
        placeholder="Schedule ID"
        maxLength={500}
        value={draft.schedule}
        onChange={(event) => setDraft({ ...draft, schedule: event.target.value })}
      />
      <TextField
        bare
        label="Gate"
        placeholder="Gate"
        maxLength={500}
        value={draft.gate}
        onChange={(event) => setDraft({ ...draft, gate: event.target.value })}
      />
      <CheckField
        label="Assigned to me"
        checked={draft.mine}
        onChange={(event) => onChange({ ...sent(), mine: event.target.checked })}
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
