// Search and filters of the list. The URL contains all of them.
import { useEffect, useRef, useState, type FormEvent } from "react";
import { HEALTH_LOOKS, STATUS_LOOKS } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { CheckField, SelectField, TextField, type Choice } from "../../parts/Field";
import {
  HEALTHS,
  hasMoreFilters,
  isFiltered,
  isLabel,
  LISTED_STATUSES,
  NO_FILTERS,
  SOURCES,
  type Filters,
} from "./filters";
import { SOURCE_TEXTS } from "../../words";

const PATIENCE_MS = 250;

interface Props {
  filters: Filters;
  onChange: (part: Partial<Filters>) => void;
}

export function FilterBar({ filters, onChange }: Props) {
  const [more, setMore] = useState(() => hasMoreFilters(filters));
  return (
    <div className="list-filters stack" role="search" aria-label="Filter schedules">
      <div className="row">
        <SearchBox
          value={filters.text}
          onChange={(text) => onChange({ text })}
          label="Search"
          placeholder="Search by name or ID"
          type="search"
        />
        <SelectField
          bare
          label="Status"
          choices={STATUS_CHOICES}
          value={filters.status}
          onChange={(event) => onChange({ status: event.target.value })}
        />
        <SelectField
          bare
          label="Health"
          choices={HEALTH_CHOICES}
          value={filters.health}
          onChange={(event) => onChange({ health: event.target.value })}
        />
        <LabelBox labels={filters.label} onChange={(label) => onChange({ label })} />
        <Button kind="quiet" aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? "Fewer filters" : "More filters"}
        </Button>
        {isFiltered(filters) ? (
          <Button kind="quiet" onClick={() => onChange(NO_FILTERS)}>
            Clear filters
          </Button>
        ) : null}
      </div>
      {filters.label.length > 0 ? (
        <ul className="plain row tight" aria-label="Label filters">
          {filters.label.map((label) => (
            <li key={label}>
              <Button
                small
                pressed
                title="Remove filter"
                onClick={() => onChange({ label: filters.label.filter((each) => each !== label) })}
              >
                <bdi className="cut list-chip">{label}</bdi> ✕
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      {more ? <MoreFilters filters={filters} onChange={onChange} /> : null}
    </div>
  );
}

const STATUS_CHOICES: readonly Choice[] = [
  ["", "Any status"],
  ...LISTED_STATUSES.map((status): Choice => [status, STATUS_LOOKS[status].word]),
];
const HEALTH_CHOICES: readonly Choice[] = [
  ["", "Any health"],
  ...HEALTHS.map((health): Choice => [health, HEALTH_LOOKS[health].word]),
];
const SOURCE_CHOICES: readonly Choice[] = [
  ["", "Any source"],
  ...SOURCES.map((source): Choice => [source, SOURCE_TEXTS[source]]),
];

const TEXT_FILTERS = [
  ["owner", "Owner", "Owner"],
  ["workflow", "Workflow", "Workflow or workflow type"],
  ["bundle", "Bundle", "Bundle"],
  ["calendar", "Calendar", "Calendar"],
  ["assignee", "Assignee", "Agent or team"],
] as const;

function MoreFilters({ filters, onChange }: Props) {
  return (
    <div className="row list-more">
      {TEXT_FILTERS.map(([name, label, placeholder]) => (
        <SearchBox
          key={name}
          label={label}
          value={filters[name]}
          onChange={(text) => onChange({ [name]: text })}
          placeholder={placeholder}
        />
      ))}
      <SelectField
        bare
        label="Source"
        choices={SOURCE_CHOICES}
        value={filters.source}
        onChange={(event) => onChange({ source: event.target.value })}
      />
      <CheckField
        label="Include deleted"
        checked={filters.deleted}
        onChange={(event) => onChange({ deleted: event.target.checked })}
      />
    </div>
  );
}

interface Box {
  label: string;
  value: string;
  placeholder: string;
  type?: string;
  onChange: (text: string) => void;
}

/** Debounced text filter. A value from another source, such as a view, replaces the text. */
function SearchBox({ label, value, placeholder, type = "text", onChange }: Box) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text.trim() === sent.current) return;
    const planned = setTimeout(() => {
      sent.current = text.trim();
      onChange(text.trim());
    }, PATIENCE_MS);
    return () => clearTimeout(planned);
  });
  return (
    <TextField
      bare
      label={label}
      type={type}
      placeholder={placeholder}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

/** Label filter, applied with Enter: a partial label would match nothing. */
function LabelBox({ labels, onChange }: { labels: readonly string[]; onChange: (labels: readonly string[]) => void }) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string[]>([]);
  const add = (event: FormEvent) => {
    event.preventDefault();
    const label = text.trim();
    if (label === "") return;
    if (!isLabel(label)) return setWrong(["Use the form name=value"]);
    setText("");
    onChange([...new Set([...labels, label])]);
  };
  return (
    <form onSubmit={add} className="list-label-box">
      <TextField
        bare
        label="Filter by label (name=value)"
        placeholder="Label name=value"
        maxLength={200}
        value={text}
        wrong={wrong}
        onChange={(event) => {
          setText(event.target.value);
          setWrong([]);
        }}
      />
    </form>
  );
}
