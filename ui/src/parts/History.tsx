// The history of a schedule, newest first; older events load by the hundred.
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ask, type Schemas } from "../api/client";
import type { Failure } from "../api/hooks";
import { useConnection, useEvents } from "../api/live";
import { useNamespace } from "../api/session";
import type { StreamEvent } from "../api/stream";
import { Badge } from "../marks/Mark";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import "./history.css";
import { eventLook, eventWhy, isAbout, newestOf, withNewer, type HistoryEvent } from "./historyEvents";
import { Json } from "./Json";
import { Empty, FailureNote, Loading } from "./Shown";
import { Table } from "./Table";
import { When } from "./When";

const PAGE = 100;
const HISTORY = "/api/schedules/{schedule_id}/history";

interface Pages {
  pages: Schemas["History"][];
  pageParams: number[];
}

/** Read older events page by page, and newer ones when the stream opens or names this schedule. */
function useHistory(scheduleId: string) {
  const namespace = useNamespace();
  const queries = useQueryClient();
  const read = useCallback(
    async (order: "asc" | "desc", after: number, signal?: AbortSignal) => {
      const query = { limit: String(PAGE), after_sequence: String(after), order };
      const { answer } = await ask("get", HISTORY, { path: { schedule_id: scheduleId }, query }, { namespace, signal });
      return answer;
    },
    [namespace, scheduleId],
  );
  const key = useMemo(() => [namespace, HISTORY, scheduleId], [namespace, scheduleId]);
  const found = useInfiniteQuery<Schemas["History"], Failure, Pages, readonly unknown[], number>({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => read("desc", pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next_cursor,
  });
  const isBehind = useRef(false);
  const isReading = useRef(false);
  const catchUp = useCallback(async () => {
    isBehind.current = true;
    // A page that is under way would replace what is added meanwhile; the effect below continues after it.
    while (isBehind.current && !isReading.current && queries.isFetching({ queryKey: key }) === 0) {
      isBehind.current = false;
      isReading.current = true;
      try {
        const newest = newestOf(queries.getQueryData<Pages>(key)?.pages ?? []);
        const answer = await read("asc", newest);
        isBehind.current ||= answer.has_more;
        if (queries.isFetching({ queryKey: key }) > 0) isBehind.current = true;
        else queries.setQueryData<Pages>(key, (old) => old && { ...old, pages: withNewer(old.pages, answer.events) });
      } catch {
        void queries.invalidateQueries({ queryKey: key }); // Retries, and shows an error that lasts.
      } finally {
        isReading.current = false;
      }
    }
  }, [queries, key, read]);
  useEvents(
    useCallback(
      (event: StreamEvent) => {
        if (isAbout(event.data, scheduleId)) void catchUp();
      },
      [scheduleId, catchUp],
    ),
  );
  // The stream reports only events after it opened: read the events between the first page and that moment.
  const connection = useConnection();
  const wasOpen = useRef(connection === "open");
  useEffect(() => {
    const isOpen = connection === "open";
    if (isOpen && !wasOpen.current) void catchUp();
    wasOpen.current = isOpen;
  }, [connection, catchUp]);
  useEffect(() => {
    if (!found.isFetching && isBehind.current) void catchUp();
  }); // After each render: a fetch may begin and end between two of them.
  return { ...found, events: found.data?.pages.flatMap((page) => page.events) ?? [] };
}

export function History({ scheduleId, zone }: { scheduleId: string; zone?: string | null }) {
  const found = useHistory(scheduleId);
  if (found.isPending) return <Loading text="Loading history…" />;
  if (found.events.length === 0) {
    if (found.error) return <FailureNote failure={found.error} again={() => void found.refetch()} />;
    return (
      <Empty title="No history">
        <p>Each decision and change of the schedule is recorded here until its retention ends.</p>
      </Empty>
    );
  }
  return (
    <>
      <Table
        className="table history"
        heads={[{ text: "Sequence", number: true }, "Event", "Recorded", "References", "Payload"]}
      >
        {found.events.map((event) => (
          <EventRow key={event.id} event={event} zone={zone} />
        ))}
      </Table>
      {found.error ? <FailureNote failure={found.error} again={() => void found.fetchNextPage()} /> : null}
      <div className="row">
        {found.hasNextPage ? (
          <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Load older events
          </Button>
        ) : null}
        <span className="muted" role="status">
          {found.events.length} events{found.hasNextPage ? "" : ", all loaded"}
        </span>
      </div>
    </>
  );
}

function EventRow({ event, zone }: { event: HistoryEvent; zone?: string | null }) {
  const why = eventWhy(event.payload);
  return (
    <tr>
      <td className="number">{event.sequence}</td>
      <td>
        <Badge look={eventLook(event)} />
        <div className="muted small">{event.event_type}</div>
        {why ? (
          <div className="small why" dir="auto">
            {why}
          </div>
        ) : null}
      </td>
      <td>
        <When at={event.recorded_at} zone={zone} />
      </td>
      <td className="refs">
        <Refs event={event} />
      </td>
      <td>
        <Payload event={event} />
      </td>
    </tr>
  );
}

function Refs({ event }: { event: HistoryEvent }) {
  const { workflow_run_id: run, workflow_instance_id: instance } = event;
  if (!run && !instance) return <span className="muted">—</span>;
  return (
    <>
      {run ? (
        <div className="cut mono" title={run}>
          <Link to="/runs/$runId" params={{ runId: run }}>
            Run {run}
          </Link>
        </div>
      ) : null}
      {instance ? (
        <div className="cut mono muted" title={instance}>
          <bdi>{instance}</bdi>
        </div>
      ) : null}
    </>
  );
}

/** Rendered on demand, as a page has a hundred payloads. */
function Payload({ event }: { event: HistoryEvent }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Hide" : "Show"}
        <span className="visually-hidden"> payload of event {event.sequence}</span>
      </Button>
      {open ? <Json value={event.payload} label={`Payload of event ${event.sequence}`} /> : null}
    </>
  );
}

export function HistoryDialog({
  scheduleId,
  zone,
  onClose,
}: {
  scheduleId: string;
  zone?: string | null;
  onClose: () => void;
}) {
  return (
    <Dialog title={`History of ${scheduleId}`} onClose={onClose} wide>
      <History scheduleId={scheduleId} zone={zone} />
    </Dialog>
  );
}
