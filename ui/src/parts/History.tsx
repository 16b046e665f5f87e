// The history of a schedule: what was decided and done, oldest first, a hundred at a time.
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { ask } from "../api/client";
import type { Failure } from "../api/hooks";
import { useEvents } from "../api/live";
import { useNamespace } from "../api/session";
import type { StreamEvent } from "../api/stream";
import { Badge } from "../marks/Mark";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import "./history.css";
import { eventLook, eventWhy, folded, isAbout, nextAfter, type HistoryEvent, type Read } from "./historyEvents";
import { Json } from "./Json";
import { Empty, FailureNote, Loading } from "./Shown";
import { When } from "./When";

const PAGE = 100;

/** What is read stays: only what came after it is asked for when the stream tells of this schedule. */
function useHistory(scheduleId: string) {
  const namespace = useNamespace();
  const queries = useQueryClient();
  const key = [namespace, "/api/schedules/{schedule_id}/history", scheduleId];
  const found = useInfiniteQuery<Read, Failure, { pages: Read[] }, readonly unknown[], number>({
    queryKey: key,
    queryFn: async ({ pageParam, signal }) => {
      const given = {
        path: { schedule_id: scheduleId },
        query: { limit: String(PAGE), after_sequence: String(pageParam) },
      };
      const { answer } = await ask("get", "/api/schedules/{schedule_id}/history", given, { namespace, signal });
      return { page: answer, after: pageParam };
    },
    initialPageParam: 0,
    getNextPageParam: ({ page, after }) => nextAfter(page, after),
  });
  useFolded(key, found.data?.pages, found.isFetching);
  const pages = found.data?.pages ?? [];
  const hasMore = pages.at(-1)?.page.has_more ?? false;
  const { fetchNextPage } = found;
  // What is told while an answer is on its way may not be in it.
  const isBehind = useRef(false);
  useEvents(
    useCallback(
      (event: StreamEvent) => {
        if (hasMore || !isAbout(event.data, scheduleId)) return;
        if (queries.isFetching({ queryKey: [namespace, "/api/schedules/{schedule_id}/history", scheduleId] }) === 0)
          void fetchNextPage();
        else isBehind.current = true;
      },
      [hasMore, scheduleId, queries, namespace, fetchNextPage],
    ),
  );
  useEffect(() => {
    if (found.isFetching || !isBehind.current) return;
    isBehind.current = false;
    void fetchNextPage();
  }, [found.isFetching, fetchNextPage]);
  return { ...found, hasMore, events: pages.flatMap(({ page }) => page.events) };
}

/** What came one by one is kept as a page would have brought it. */
function useFolded(key: readonly unknown[], pages: readonly Read[] | undefined, isFetching: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (pages === undefined || isFetching) return;
    const fewer = folded(pages, PAGE);
    if (fewer.length < pages.length)
      queries.setQueryData(key, { pages: fewer, pageParams: fewer.map(({ after }) => after) });
  });
}

export function History({ scheduleId, zone }: { scheduleId: string; zone?: string | null }) {
  const found = useHistory(scheduleId);
  if (found.isPending) return <Loading text="Reading the history…" />;
  if (found.events.length === 0) {
    if (found.error) return <FailureNote failure={found.error} again={() => void found.refetch()} />;
    return (
      <Empty title="Nothing is kept">
        <p>Every decision and change of a schedule is written down here. What was older than the retention is gone.</p>
      </Empty>
    );
  }
  return (
    <>
      <div className="table-frame">
        <table className="table history">
          <thead>
            <tr>
              <th scope="col" className="number">
                Seq
              </th>
              <th scope="col">Event</th>
              <th scope="col">Recorded at</th>
              <th scope="col">Refs</th>
              <th scope="col">Payload</th>
            </tr>
          </thead>
          <tbody>
            {found.events.map((event) => (
              <EventRow key={event.id} event={event} zone={zone} />
            ))}
          </tbody>
        </table>
      </div>
      {found.error ? <FailureNote failure={found.error} again={() => void found.fetchNextPage()} /> : null}
      <div className="row">
        {found.hasMore ? (
          <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Load more
          </Button>
        ) : null}
        <span className="muted" role="status">
          {found.events.length} events{found.hasMore ? ", there are more" : ", to the newest"}
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
            run {run}
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

/** The text is made when it is first looked at: a page holds a hundred of them. */
function Payload({ event }: { event: HistoryEvent }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button small kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Hide" : "Show"}
        <span className="visually-hidden"> the payload of event {event.sequence}</span>
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
