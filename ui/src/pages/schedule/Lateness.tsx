// Chart of start delays, loaded on demand.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisMarks, axisText } from "../../time/axis";
import { durationText } from "../../time/zones";
import type { Bar } from "./runBars";
import { spanOf } from "./runBars";
import { atSeconds } from "./RunChart";
import { useWidth } from "./useWidth";

const HEIGHT = 110;
const LEFT = 54;

interface Props {
  bars: readonly Bar[];
  zone: string;
}

export default function Lateness({ bars, zone }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  useEffect(() => {
    const place = frame.current;
    if (place === null) return undefined;
    const plot = new uPlot(optionsFor(place, width, zone, bars), dataOf(bars), place);
    return () => plot.destroy();
  }, [bars, zone, width]);
  return <div ref={frame} className="lateness" role="img" aria-label={lateWords(bars)} />;
}

/** uPlot requires ascending times. */
function dataOf(bars: readonly Bar[]): uPlot.AlignedData {
  const late = bars.filter((bar) => bar.lateSeconds !== null);
  return [late.map(atSeconds), late.map((bar) => bar.lateSeconds)];
}

export function lateWords(bars: readonly Bar[]): string {
  const late = bars.flatMap((bar) => (bar.lateSeconds === null ? [] : [bar.lateSeconds]));
  if (late.length === 0) return "No scheduled runs";
  const sorted = [...late].sort((one, other) => one - other);
  const half = sorted[Math.floor(sorted.length / 2)]!;
  return `Start delay: median ${durationText(half)}, maximum ${durationText(sorted.at(-1)!)}`;
}

function optionsFor(place: HTMLElement, width: number, zone: string, bars: readonly Bar[]): uPlot.Options {
  const colour = (name: string): string => getComputedStyle(place).getPropertyValue(name).trim();
  const span = spanOf(bars);
  const marks = axisMarks(span, zone, Math.max(2, Math.floor((width - LEFT - 8) / 110)));
  const font = `11px ${getComputedStyle(place).fontFamily}`;
  const axis = {
    stroke: colour("--muted"),
    font,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { time: true, range: [span.from / 1000, span.to / 1000] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        splits: () => marks.map((mark) => mark.at / 1000),
        values: () => marks.map((mark) => axisText(mark, zone)),
      },
      { ...axis, size: LEFT, values: (_, splits) => splits.map((seconds) => durationText(seconds)) },
    ],
    series: [
      {},
      {
        stroke: colour("--accent"),
        width: 1.5,
        fill: colour("--accent-soft"),
        points: { show: bars.length < 60, size: 5 },
      },
    ],
  };
}
