// The recent occurrences of a schedule as a strip of marks, oldest first, and the durations of its runs.
import { useNavigate } from "@tanstack/react-router";
import { useId, useState, type KeyboardEvent, type MouseEvent } from "react";
import { createPortal } from "react-dom";
import { MarkShape } from "../marks/Mark";
import { dateTimeText, durationText, useViewerZone } from "../time/zones";
import { indexAt, MOST_RECENT, recentLook, recentSummary, recentText, trendOf, type Recent } from "./recent";
import "./strip.css";
import { zoneLabel } from "./When";

const SLOT = 7;
const HIGH = 12;

interface Props {
  recent: readonly Recent[];
  zone?: string | null;
}

/** One tab stop: arrow keys move between marks, Enter opens the run. */
export function Strip({ recent, zone }: Props) {
  const navigate = useNavigate();
  const [at, setAt] = useState<{ index: number; x: number; y: number } | null>(null);
  const id = useId();
  const shown = recent.slice(-MOST_RECENT);
  if (shown.length === 0) return <span className="muted small">None yet</span>;
  const placed = (index: number, box: DOMRect) => ({ index, x: box.left + index * SLOT, y: box.bottom + 6 });
  const point = (index: number, box: DOMRect) => setAt(placed(index, box));
  const open = (index: number) => {
    const run = shown[index]?.run_id;
    if (run) void navigate({ to: "/runs/$runId", params: { runId: run } });
  };
  const key = (event: KeyboardEvent<SVGSVGElement>) => {
    const current = Math.min(at?.index ?? shown.length - 1, shown.length - 1);
    const next = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (event.key === "Enter") open(current);
    else if (event.key === "Escape") setAt(null);
    if (next === undefined) return;
    event.preventDefault();
    point(Math.max(0, Math.min(shown.length - 1, next)), event.currentTarget.getBoundingClientRect());
  };
  const under = (event: MouseEvent<SVGSVGElement>) =>
    indexAt(event.clientX - event.currentTarget.getBoundingClientRect().left, SLOT, shown.length);
  return (
    <>
      <svg
        className="strip-marks"
        width={shown.length * SLOT}
        height={HIGH}
        role="group"
        aria-roledescription="strip"
        aria-label={recentSummary(shown)}
        aria-describedby={at ? id : undefined}
        tabIndex={0}
        onKeyDown={key}
        onFocus={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          // A tap points at a mark before the strip gets the focus.
          setAt((now) => now ?? placed(shown.length - 1, box));
        }}
        onBlur={() => setAt(null)}
        onMouseMove={(event) => point(under(event), event.currentTarget.getBoundingClientRect())}
        onMouseLeave={() => setAt(null)}
        onClick={(event) => open(under(event))}
      >
        {at ? (
          <rect
            className="strip-at"
            x={Math.min(at.index, shown.length - 1) * SLOT}
            y={0}
            width={SLOT}
            height={HIGH}
            rx={2}
          />
        ) : null}
        {shown.map((each, index) => (
          <Slot key={index} each={each} x={index * SLOT} />
        ))}
      </svg>
      {at && shown[at.index] ? <Told id={id} each={shown[at.index]!} zone={zone} x={at.x} y={at.y} /> : null}
    </>
  );
}

/** A mark of 12 × 12, scaled to fit its slot. */
function Slot({ each, x }: { each: Recent; x: number }) {
  const look = recentLook(each);
  return (
    <g className={`tone-${look.tone}`} transform={`translate(${x} 2) scale(0.667)`}>
      <MarkShape shape={look.shape} />
    </g>
  );
}

/** The tooltip of a mark, with the time in the zones of the schedule and the viewer. */
function Told({ id, each, zone, x, y }: { id: string; each: Recent; zone?: string | null; x: number; y: number }) {
  const viewer = useViewerZone();
  const zones = [...new Set([zone ?? viewer, viewer])];
  return createPortal(
    <div
      role="tooltip"
      id={id}
      aria-live="polite"
      className="tooltip"
      style={{ left: Math.max(8, Math.min(x, window.innerWidth - 300)), top: y }}
    >
      <strong>{recentText(each)}</strong>
      {zones.map((name) => (
        <div key={name}>
          {dateTimeText(each.at, name)} {zoneLabel(each.at, name)}
        </div>
      ))}
    </div>,
    document.body,
  );
}

const TREND_HIGH = 18;

/** The durations of the recent runs as a line below their marks, with the median as a number. */
export function DurationTrend({ recent }: { recent: readonly Recent[] }) {
  const shown = recent.slice(-MOST_RECENT);
  const trend = trendOf(shown, SLOT, TREND_HIGH);
  if (trend === null) return null;
  const text = `median ${durationText(trend.median)}, last ${durationText(trend.newest)}`;
  return (
    <span className="trend" title={`Duration: ${text} (${trend.count} ${trend.count === 1 ? "run" : "runs"})`}>
      <svg width={shown.length * SLOT} height={TREND_HIGH} role="img" aria-label={`Duration: ${text}`}>
        <path d={trend.line} />
        <circle cx={trend.last.x} cy={trend.last.y} r={1.8} />
      </svg>
      <span className="small nowrap muted" aria-hidden="true">
        {durationText(trend.median)}
      </span>
    </span>
  );
}
