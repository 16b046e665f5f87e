// Bar chart of runs over time; the height is the duration, the mark is the state.
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { MarkShape } from "../../marks/Mark";
import { fullText, When } from "../../parts/When";
import { axisMarks, axisText } from "../../time/axis";
import { durationText, instant, useViewerZone } from "../../time/zones";
import { counted } from "../../words";
import {
  barWidth,
  barWords,
  gridOf,
  heightOf,
  nearest,
  placed,
  scaleOf,
  spanOf,
  type Bar,
  type Placed,
} from "./runBars";
import { useWidth } from "./useWidth";

const HEIGHT = 150;
const TOP = 18; // Space for the mark above the highest bar
const BASE = 24; // Space for marks without a run, below the line
const LEFT = 54;
const MOST_SHAPES_PX = 7; // Below this distance, marks would overlap.

interface Props {
  bars: readonly Bar[];
  zone: string;
  label: string;
}

export function RunChart({ bars, zone, label }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const inner = Math.max(40, width - LEFT - 8);
  const span = useMemo(() => spanOf(bars), [bars]);
  const places = useMemo(() => placed(bars, span, inner, HEIGHT), [bars, span, inner]);
  const [at, setAt] = useState<number | null>(null);
  const chosen = at !== null && at < places.length ? at : null;
  return (
    <div className="run-chart" ref={frame}>
      <Told bar={chosen === null ? null : places[chosen]!.bar} many={bars.length} zone={zone} />
      <svg width={width} height={TOP + HEIGHT + BASE + 22} role="group" aria-label={label} className="bars">
        <g transform={`translate(${LEFT} ${TOP})`}>
          <Grid bars={bars} width={inner} />
          <TimeMarks span={span} zone={zone} width={inner} />
          <Bars
            places={places}
            width={barWidth(bars, span, inner)}
            inner={inner}
            chosen={chosen}
            onChoose={setAt}
            zone={zone}
          />
        </g>
      </svg>
    </div>
  );
}

function Told({ bar, many, zone }: { bar: Bar | null; many: number; zone: string }) {
  return (
    <div className="chart-told" aria-hidden="true">
      {bar === null ? (
        <span className="muted">{counted(many, "occurrence")}. Hover or use the arrow keys for details.</span>
      ) : (
        <>
          <When at={bar.at} zone={zone} /> <span>{barWords(bar)}</span>
        </>
      )}
    </div>
  );
}

function Grid({ bars, width }: { bars: readonly Bar[]; width: number }) {
  const scale = scaleOf(bars);
  return (
    <g className="grid" aria-hidden="true">
      {gridOf(scale).map((seconds) => {
        const y = HEIGHT - heightOf(seconds, scale) * HEIGHT;
        return (
          <g key={seconds}>
            <line x1={0} x2={width} y1={y} y2={y} />
            <text x={-8} y={y + 4} textAnchor="end">
              {durationText(seconds)}
            </text>
          </g>
        );
      })}
      <line x1={0} x2={width} y1={HEIGHT} y2={HEIGHT} className="base" />
    </g>
  );
}

function TimeMarks({ span, zone, width }: { span: { from: number; to: number }; zone: string; width: number }) {
  const marks = axisMarks(span, zone, Math.max(2, Math.floor(width / 110)));
  return (
    <g className="grid" aria-hidden="true">
      {marks.map((mark) => {
        const x = ((mark.at - span.from) / (span.to - span.from)) * width;
        return (
          <g key={mark.at}>
            <line x1={x} x2={x} y1={HEIGHT} y2={HEIGHT + BASE} />
            <text x={Math.min(x, width - 30)} y={HEIGHT + BASE + 14} textAnchor={x < 30 ? "start" : "middle"}>
              {axisText(mark, zone)}
            </text>
          </g>
        );
      })}
    </g>
  );
}

interface BarsProps {
  places: readonly Placed[];
  width: number;
  inner: number;
  chosen: number | null;
  onChoose: (index: number | null) => void;
  zone: string;
}

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

function Bars({ places, width, inner, chosen, onChoose, zone }: BarsProps) {
  const group = useRef<SVGGElement>(null);
  const navigate = useNavigate();
  const viewer = useViewerZone();
  const stop = chosen ?? places.length - 1;
  const open = (index: number) => {
    const runId = places[index]?.bar.runId;
    if (runId) void navigate({ to: "/runs/$runId", params: { runId } });
  };
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.key === "Enter") open(stop);
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(places.length - 1, Math.max(0, stop + step));
    onChoose(next);
    group.current?.querySelector<SVGGElement>(`[data-bar="${next}"]`)?.focus();
  };
  const point = (event: PointerEvent<SVGGElement>) => {
    const box = group.current?.getBoundingClientRect();
    const svg = group.current?.ownerSVGElement?.getBoundingClientRect();
    if (box && svg) onChoose(nearest(places, event.clientX - svg.left - LEFT, 24));
  };
  const dense = width < MOST_SHAPES_PX;
  return (
    <g
      ref={group}
      onKeyDown={move}
      onPointerMove={point}
      onPointerLeave={() => onChoose(null)}
      onClick={() => chosen !== null && open(chosen)}
    >
      <rect x={0} y={-TOP} width={inner} height={HEIGHT + TOP + BASE} className="pointed" />
      {places.map((place, index) => (
        <g
          key={place.bar.key}
          data-bar={index}
          role={place.bar.runId ? "link" : "img"}
          tabIndex={index === stop ? 0 : -1}
          aria-label={`${fullText(place.bar.at, zone, viewer).split("\n")[0]}: ${barWords(place.bar)}`}
          className={`bar tone-${place.bar.look.tone}${index === chosen ? " chosen" : ""}`}
          onFocus={() => onChoose(index)}
          transform={`translate(${Math.round(place.x * 10) / 10} 0)`}
        >
          <OneBar place={place} width={width} dense={dense && index !== chosen} />
        </g>
      ))}
    </g>
  );
}

/** Dense charts show marks only for problems. */
function OneBar({ place, width, dense }: { place: Placed; width: number; dense: boolean }) {
  const { bar, height } = place;
  const onLine = bar.seconds === null;
  const shape = dense && bar.look.tone === "ok" ? null : <MarkShape shape={bar.look.shape} />;
  const scale = Math.min(1, Math.max(0.6, width / 10));
  const y = onLine ? HEIGHT + 4 : HEIGHT - height - 12 * scale - 3;
  return (
    <>
      {onLine ? null : (
        <rect
          x={-width / 2}
          y={HEIGHT - height}
          width={width}
          height={height}
          rx={Math.min(2, width / 3)}
          fill="currentColor"
        />
      )}
      {shape === null ? null : <g transform={`translate(${-6 * scale} ${y}) scale(${scale})`}>{shape}</g>}
    </>
  );
}

/** Position of a bar on the time axis, for other charts. */
export function atSeconds(bar: Bar): number {
  return Math.round(instant(bar.at) / 1000);
}
