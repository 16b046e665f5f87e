// What a run printed and logged: it follows while the run goes on, and stays at the end unless somebody scrolls up.
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
    gcTime: 0, // whoever comes back begins anew
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
    return (
      <p className="muted">
        {log.data.ended
          ? "It printed and logged nothing that was kept."
          : "Nothing yet; what it prints and logs appears here by itself."}
      </p>
    );
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
          {log.data.ended ? `${log.data.lines.length} lines` : atEnd ? "Following…" : "Not following: scrolled up"}
        </span>
        {atEnd ? null : (
          <Button small onClick={() => setAtEnd(true)}>
            To the end
          </Button>
        )}
      </div>
      {log.error ? <FailureNote failure={log.error} /> : null}
    </div>
  );
}

function Missing({ many }: { many: number }) {
  if (many <= 0) return null;
  return (
    <div className="muted">
      … {many.toLocaleString("en")} {many === 1 ? "line is" : "lines are"} not here: only so much of a log is kept
    </div>
  );
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
