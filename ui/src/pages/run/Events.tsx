// The events of a run and its steps, in the order of their records.
import { useEffect, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { usePages } from "../../api/hooks";
import { CheckField } from "../../parts/Field";
import { Json } from "../../parts/Json";
import { LoadMore } from "../../parts/LoadMore";
import { FailureNote, Loading } from "../../parts/Shown";
import { When } from "../../parts/When";
import { capitalised } from "../../words";

type Event = Schemas["RunEvent"];

const PAGE = 100;

export function Events({ run }: { run: Schemas["Run"] }) {
  const [own, setOwn] = useState(false);
  const pages = usePages("/api/runs/{run_id}/events", { path: { run_id: run.run_id }, query: { limit: PAGE, own } });
  useChanged(run, pages.refetch);
  const events = pages.data?.pages.flatMap((page) => page.events) ?? [];
  return (
    <div className="stack">
      {run.steps && run.steps.length > 0 ? (
        <CheckField label="Hide step events" checked={own} onChange={(event) => setOwn(event.target.checked)} />
      ) : null}
      {pages.error ? (
        <FailureNote failure={pages.error} again={() => void pages.refetch()} />
      ) : pages.isPending ? (
        <Loading />
      ) : null}
      <ol className="plain events">
        {events.map((event) => (
          <EventRow key={`${event.run_id} ${event.sequence}`} event={event} zone={run.timezone} />
        ))}
      </ol>
      <LoadMore of={pages} text="Load later events" />
    </div>
  );
}

/** Refetch when the state of the run or of a step changes. */
export function useChanged(run: Schemas["Run"], refetch: () => unknown): void {
  const now = [run.state, run.attempt, ...(run.steps ?? []).map((step) => step.state)].join(" ");
  const before = useRef(now);
  useEffect(() => {
    if (before.current !== now) void refetch();
    before.current = now;
  }, [now, refetch]);
}

function EventRow({ event, zone }: { event: Event; zone?: string | null }) {
  const isEmpty = Object.keys(event.payload).length === 0;
  return (
    <li>
      <div className="event-head">
        <strong>{eventText(event.event_type)}</strong>
        {event.node_id ? <bdi className="badge">{event.node_id}</bdi> : null}
        <span className="muted small">#{event.sequence}</span>
      </div>
      <When at={event.recorded_at} zone={zone} />
      {isEmpty ? null : (
        <details>
          <summary>Details</summary>
          <Json value={event.payload} label={`Details of ${event.event_type}`} />
        </details>
      )}
    </li>
  );
}

/** "run.approval_requested" → "Run approval requested". */
function eventText(type: string): string {
  if (type === "ScheduleTriggered") return "Schedule triggered";
  return capitalised(type.replace(".", " ").replaceAll("_", " "));
}
