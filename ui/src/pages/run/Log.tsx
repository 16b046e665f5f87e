// The log of a run. It follows new lines until the reader scrolls up.
import { useQuery } from "@tanstack/react-query";
import { Fragment, memo, useLayoutEffect, useRef, useState } from "react";
import { ask } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { Button } from "../../parts/Button";
import { FailureNote, Loading } from "../../parts/Shown";
import { fullText } from "../../parts/When";
import { clockText, useViewerZone } from "../../time/zones";
import { followed, lineText, missingBefore, NOTHING_LOGGED, type Followed, type LogLine } from "./followed";
import { counted } from "../../words";

const EVERY_MS = 1_500;
const NEAR_PX = 24;

function useLog(runId: string) {
  const namespace = useNamespace();
  const kept = useRef(NOTHING_LOGGED);
  return useQuery<Followed, Failure>({
    queryKey: [namespace, "/api/runs/{run_id}/logs", runId, "followed"],
    queryFn: async ({ signal }) => {
      const given = { path: { run_id: runId }, query: { after: kept.current.after } };
      kept.current = followed(
        kept.current,
        (await ask("get", "/api/runs/{run_id}/logs", given, { namespace, signal })).answer,
      );
      return kept.current;
    },
    refetchInterval: (query) => (query.state.data?.ended ? false : EVERY_MS),
    structuralSharing: false,
    gcTime: 0, // start over on the next visit
    meta: { live: false },
  });
}

export function Log({ runId }: { runId: string }) {
  const log = useLog(runId);
  const frame = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const lines = log.data?.lines;
  useLayoutEffect(() => {
    if (atEnd && frame.current) frame.current.scrollTop = frame.current.scrollHeight;
  }, [lines, atEnd]);
  if (log.data === undefined)
    return log.error ? <FailureNote failure={log.error} again={() => void log.refetch()} /> : <Loading />;
  if (log.data.lines.length === 0) {
    return <p className="muted">{log.data.ended ? "No logs" : "No logs yet. New lines appear automatically."}</p>;
  }
  return (
    <div className="stack">
      <div
        className="log"
        ref={frame}
        tabIndex={0}
        role="log"
        aria-label="Log"
        aria-live="off"
        onScroll={({ currentTarget: box }) => setAtEnd(box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX)}
      >
        <Lines lines={log.data.lines} />
      </div>
      <div className="row far">
        <span className="muted small">
          {log.data.ended ? counted(log.data.lines.length, "line") : atEnd ? "Following…" : "Not following"}
        </span>
        {atEnd ? null : (
          <Button small onClick={() => setAtEnd(true)}>
            Scroll to end
          </Button>
        )}
      </div>
      {log.error ? <FailureNote failure={log.error} /> : null}
    </div>
  );
}

function Missing({ many }: { many: number }) {
  if (many <= 0) return null;
  return <div className="muted">… {counted(many, "line")} not retained (log size limit)</div>;
}

const Lines = memo(function Lines({ lines }: { lines: readonly LogLine[] }) {
  const zone = useViewerZone();
  return lines.map((line, index) => (
    <Fragment key={line.number}>
      <Missing many={missingBefore(lines, index)} />
      <div className={line.stream === "stderr" ? "log-line stderr" : "log-line"}>
        <time dateTime={line.at} title={fullText(line.at, null, zone)}>
          {clockText(line.at, zone)}
        </time>
        <span className="log-stream">{line.stream}</span>
        <span className="log-text" dir="auto">
          {lineText(line.text)}
        </span>
      </div>
    </Fragment>
  ));
});
