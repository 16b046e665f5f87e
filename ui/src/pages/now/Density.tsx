// The number of starts over time, with labelled peaks.
import { memo, useMemo } from "react";
import { zoomed, type Span } from "../../time/axis";
import { clockText, durationText } from "../../time/zones";
import { counted } from "../../words";
import { densityBars, labelled, type DensityBar } from "./density";
import type { Fleet } from "./useAgenda";

interface Props {
  fleet: Pick<Fleet, "buckets" | "bucketSeconds" | "countedSeconds" | "origin">;
  span: Span;
  width: number;
  now: number;
  zone: string;
  onSpan: (span: Span) => void;
}

const HEIGHT = 62;
const TOP = 18;
const LABEL_ROOM = 92;

export const Density = memo(function Density({ fleet, span, width, now, zone, onSpan }: Props) {
  const bars = useMemo(
    () => densityBars(fleet.buckets, { origin: fleet.origin, seconds: fleet.bucketSeconds, span, width }),
    [fleet, span, width],
  );
  const peaks = useMemo(() => labelled(bars, LABEL_ROOM), [bars]);
  return (
    <svg className="density" width={width} height={HEIGHT} role="img" aria-label={densityText(bars, peaks, zone)}>
      <g className="moves">
        <path className="grid-line" d={`M0 ${HEIGHT - 0.5}H${width}`} />
        {bars.map((bar) => (
          <Column
            key={bar.at}
            bar={bar}
            seconds={fleet.bucketSeconds}
            peakSeconds={fleet.countedSeconds}
            isComing={bar.at >= now}
            zone={zone}
            onPick={() => onSpan(zoomed(span, 0.25, bar.fullestAt))}
          />
        ))}
        {peaks.map((bar) => (
          <Peak key={bar.at} bar={bar} width={width} zone={zone} />
        ))}
      </g>
    </svg>
  );
});

interface ColumnProps {
  bar: DensityBar;
  seconds: number;
  peakSeconds: number;
  isComing: boolean;
  zone: string;
  onPick: () => void;
}

function Column({ bar, seconds, peakSeconds, isComing, zone, onPick }: ColumnProps) {
  const high = bar.starts === 0 ? 0 : Math.max(2, bar.share * (HEIGHT - TOP));
  const inner = Math.max(1, bar.width - (bar.width > 4 ? 1.5 : 0.5));
  return (
    <g onClick={onPick} data-tip={`${columnText(bar, seconds, peakSeconds, zone)}\nClick to zoom in`}>
      <rect className="density-room" x={bar.x} y={0} width={bar.width} height={HEIGHT} />
      {high > 0 ? (
        <rect
          className={isComing ? "density-bar coming" : "density-bar"}
          x={bar.x}
          y={HEIGHT - high}
          width={inner}
          height={high}
          rx={inner > 5 ? 1.5 : 0}
        />
      ) : null}
    </g>
  );
}

/** "22:00–22:05: 801 starts, 0 skipped\nPeak: 561 in 1 min at 22:04". */
function columnText(bar: DensityBar, seconds: number, peakSeconds: number, zone: string): string {
  const all = `${clockText(bar.at, zone)}–${clockText(bar.at + seconds * 1_000, zone)}: ${bar.total.toLocaleString("en")} starts, ${bar.skips.toLocaleString("en")} skipped`;
  if (bar.total === bar.starts) return all;
  return `${all}\nPeak: ${bar.starts.toLocaleString("en")} in ${durationText(peakSeconds)} at ${clockText(bar.fullestAt, zone)}`;
}

function Peak({ bar, width, zone }: { bar: DensityBar; width: number; zone: string }) {
  const middle = bar.x + bar.width / 2;
  const atEnd = middle > width - LABEL_ROOM;
  return (
    <g className="peak" aria-hidden="true">
      <path d={`M${middle - 4} ${TOP - 12}h8l-4 6Z`} />
      <text x={atEnd ? middle - 8 : middle + 8} y={TOP - 5} textAnchor={atEnd ? "end" : "start"}>
        {bar.starts} at {clockText(bar.fullestAt, zone)}
      </text>
    </g>
  );
}

function densityText(bars: readonly DensityBar[], peaks: readonly DensityBar[], zone: string): string {
  const all = bars.reduce((sum, bar) => sum + bar.total, 0);
  const told = peaks.map((bar) => `${bar.starts} at ${clockText(bar.fullestAt, zone)}`).join(", ");
  return `${counted(all, "start")} in view${told ? `; peaks: ${told}` : ""}`;
}
