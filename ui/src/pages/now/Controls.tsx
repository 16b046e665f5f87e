// The controls of the timeline: filters, time range, zoom and pan.
import { useEffect, useRef, useState } from "react";
import { Button } from "../../parts/Button";
import { CheckField } from "../../parts/Field";
import { reasonText } from "../../words";
import type { Filter } from "./useAgenda";
import { PRESETS, type View } from "./span";

interface Props {
  view: View;
  filter: Filter;
  onlyTroubled: boolean;
  onFilter: (text: string, label: string) => void;
  onAnyReason: () => void;
  onTroubled: (only: boolean) => void;
  onHours: (hours: number) => void;
  onPan: (share: number) => void;
  onNow: () => void;
}

export function Controls({
  view,
  filter,
  onlyTroubled,
  onFilter,
  onAnyReason,
  onTroubled,
  onHours,
  onPan,
  onNow,
}: Props) {
  return (
    <div className="row far now-controls">
      <div className="row">
        <Filters filter={filter} onFilter={onFilter} />
        {filter.reason ? (
          <Button small pressed onClick={onAnyReason} title="Remove filter">
            Reason: {reasonText(filter.reason)} ×
          </Button>
        ) : null}
        <CheckField
          label="Needs attention"
          checked={onlyTroubled}
          onChange={(event) => onTroubled(event.target.checked)}
        />
      </div>
      <div className="row" role="group" aria-label="Time range">
        {view.from === null ? null : (
          <Button small onClick={onNow}>
            Now
          </Button>
        )}
        <div className="joined">
          {PRESETS.map(([hours, text]) => (
            <Button key={hours} small pressed={Math.abs(view.hours - hours) < 0.01} onClick={() => onHours(hours)}>
              {text}
            </Button>
          ))}
        </div>
        <div className="joined">
          <Button small aria-label="Earlier" title="Earlier (←)" onClick={() => onPan(-0.5)}>
            ←
          </Button>
          <Button small aria-label="Zoom out" title="Zoom out (−)" onClick={() => onHours(view.hours * 2)}>
            −
          </Button>
          <Button small aria-label="Zoom in" title="Zoom in (+)" onClick={() => onHours(view.hours / 2)}>
            +
          </Button>
          <Button small aria-label="Later" title="Later (→)" onClick={() => onPan(0.5)}>
            →
          </Button>
        </div>
      </div>
    </div>
  );
}

const TYPING_MS = 300;

/** The address changes when typing stops; a changed address replaces the typed text. */
function Filters({ filter, onFilter }: { filter: Pick<Filter, "text" | "label">; onFilter: Props["onFilter"] }) {
  const [typed, setTyped] = useState({ text: filter.text, label: filter.label });
  const send = useRef(onFilter);
  send.current = onFilter;
  // The address changes a moment later, when the field may already have more text.
  const sent = useRef(typed);
  useEffect(() => {
    if (filter.text === sent.current.text && filter.label === sent.current.label) return;
    sent.current = { text: filter.text, label: filter.label };
    setTyped(sent.current);
  }, [filter.text, filter.label]);
  useEffect(() => {
    if (typed.text === sent.current.text && typed.label === sent.current.label) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      send.current(typed.text, typed.label);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <>
      <input
        className="input now-find"
        type="search"
        aria-label="Filter schedules"
        placeholder="Filter schedules"
        maxLength={200}
        value={typed.text}
        onChange={(event) => setTyped({ ...typed, text: event.target.value })}
      />
      <input
        className="input now-find"
        type="search"
        aria-label="Filter by label (name=value)"
        placeholder="label=value"
        maxLength={200}
        value={typed.label}
        onChange={(event) => setTyped({ ...typed, label: event.target.value })}
      />
    </>
  );
}
