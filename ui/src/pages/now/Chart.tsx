// The timeline: one lane per schedule with past decisions, the current time and predictions.
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";
import { axisMarks, position, SHORTEST_SPAN, zoomed, type Span } from "../../time/axis";
import { durationText } from "../../time/zones";
import { Axis } from "./Axis";
import { Density } from "./Density";
import { HoverText, type HoverHandle } from "./HoverText";
import { LaneRow } from "./LaneRow";
import type { Lane } from "./lanes";
import { moveAmongMarks } from "./markKeys";
import { pointedAt } from "./span";
import { usePanZoom } from "./usePanZoom";
import type { Fleet } from "./useAgenda";

interface Props {
  fleet: Fleet;
  lanes: readonly Lane[];
  span: Span;
  /** The current time in visible steps. */
  now: number;
  zone: string;
  onSpan: (span: Span) => void;
  onExplain: (lane: Lane, at: string) => void;
}

const WIDE_ROW = 34;
const NARROW_ROW = 54;
const NARROW = 620;

export function Chart({ fleet, lanes, span: settled, now, zone, onSpan, onExplain }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const hover = useRef<HoverHandle>(null);
  const { width, narrow } = useWidths(frame, plot);
  const { span, wasDragged } = usePanZoom(frame, plot, settled, onSpan);
  const marks = useMemo(() => axisMarks(span, zone, Math.max(2, Math.floor(width / 76))), [span, zone, width]);
  const grid = useMemo(
    () => marks.map((mark) => `M${position(mark.at, span, width).toFixed(1)} 0V60`).join(""),
    [marks, span, width],
  );
  const rows = useWindowVirtualizer({
    count: lanes.length,
    estimateSize: () => (narrow ? NARROW_ROW : WIDE_ROW),
    overscan: 6,
    scrollMargin: frame.current?.offsetTop ?? 0,
    getItemKey: (index) => lanes[index]!.id,
  });
  const height = narrow ? NARROW_ROW : WIDE_ROW;
  useLayoutEffect(() => rows.measure(), [height, rows]);
  const click = (event: MouseEvent) => {
    const asked = wasDragged() ? null : askedFor(event.target as Element, event.clientX, span);
    const lane = asked && lanes.find((each) => each.id === asked.id);
    if (asked?.isBar && span.to - span.from > SHORTEST_SPAN) onSpan(zoomed(span, 0.25, Date.parse(asked.at)));
    else if (lane) onExplain(lane, asked.at);
  };
  const press = (event: KeyboardEvent) => {
    if (moveAmongMarks(event.nativeEvent)) event.preventDefault();
  };
  return (
    <div
      ref={frame}
      className={narrow ? "lanes narrow" : "lanes"}
      role="group"
      aria-label="Timeline; arrow keys move, plus and minus zoom"
      tabIndex={0}
      onClick={click}
      onKeyDown={press}
      onPointerOver={(event) => hover.current?.over(event.target as Element)}
      onPointerLeave={() => hover.current?.clear()}
      onFocus={(event) => hover.current?.over(event.target)}
      onBlur={() => hover.current?.clear()}
    >
      <div className="lanes-head">
        <div className="lanes-corner muted small">{perBarText(fleet)}</div>
        <div className="lanes-plot" ref={plot}>
          {width > 0 ? (
            <>
              <Density fleet={fleet} span={span} width={width} now={now} zone={zone} onSpan={onSpan} />
              <Axis marks={marks} span={span} width={width} now={now} zone={zone} />
            </>
          ) : null}
        </div>
      </div>
      <div className="lanes-body" role="list" aria-label="Schedules" style={{ height: rows.getTotalSize() }}>
        {width > 0
          ? rows
              .getVirtualItems()
              .map((item) => (
                <LaneRow
                  key={item.key}
                  lane={lanes[item.index]!}
                  place={item.index + 1}
                  of={lanes.length}
                  top={item.start - rows.options.scrollMargin}
                  height={height}
                  span={span}
                  width={width}
                  now={now}
                  grid={grid}
                  origin={fleet.origin}
                  seconds={fleet.bucketSeconds}
                  viewer={zone}
                />
              ))
          : null}
      </div>
      <HoverText ref={hover} />
    </div>
  );
}

interface Asked {
  id: string;
  at: string;
  /** A bar groups many occurrences; a click zooms in. */
  isBar: boolean;
}

/** The instant of a mark, or the instant under the pointer elsewhere in a lane. */
function askedFor(target: Element, clientX: number, span: Span): Asked | null {
  const lane = target.closest<HTMLElement>("[data-lane]");
  const plot = target.closest("[data-plot]");
  if (lane === null || plot === null) return null;
  const mark = target.closest<SVGElement>("[data-mark]");
  const box = plot.getBoundingClientRect();
  const at = mark?.dataset["mark"] ?? new Date(pointedAt(clientX - box.left, box.width, span)).toISOString();
  return { id: lane.dataset["lane"]!, at, isBar: mark?.dataset["closer"] !== undefined };
}

function perBarText({ bucketSeconds, countedSeconds }: Fleet): string {
  const per = countedSeconds === 60 ? "min" : durationText(countedSeconds);
  return bucketSeconds === countedSeconds
    ? `Starts per ${per}`
    : `Peak starts/${per} per ${durationText(bucketSeconds)}`;
}

function useWidths(frame: React.RefObject<HTMLDivElement | null>, plot: React.RefObject<HTMLDivElement | null>) {
  const [widths, setWidths] = useState({ width: 0, narrow: false });
  useLayoutEffect(() => {
    const measure = () => {
      const narrow = (frame.current?.clientWidth ?? NARROW) < NARROW;
      const width = Math.floor(plot.current?.clientWidth ?? 0);
      setWidths((known) => (known.width === width && known.narrow === narrow ? known : { width, narrow }));
    };
    measure();
    const watch = new ResizeObserver(measure);
    if (frame.current) watch.observe(frame.current);
    if (plot.current) watch.observe(plot.current);
    return () => watch.disconnect();
  }, [frame, plot]);
  return widths;
}
