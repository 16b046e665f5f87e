// The lane of a frequent schedule: a bar for each part of the view instead of single marks.
import { useMemo, useState } from "react";
import type { Span } from "../../time/axis";
import { clockText, dayText } from "../../time/zones";
import { countWords, laneBars, mostOf, segmentsOf, type LaneBar } from "./laneBars";
import type { Lane } from "./lanes";

interface Props {
  buckets: NonNullable<Lane["buckets"]>;
  origin: number;
  seconds: number;
  span: Span;
  width: number;
  now: number;
  viewer: string;
}

export function LaneBars({ buckets, origin, seconds, span, width, now, viewer }: Props) {
  const bars = useMemo(
    () => laneBars(buckets, { origin, seconds, span, width }),
    [buckets, origin, seconds, span, width],
  );
  const most = useMemo(() => mostOf(bars), [bars]);
  const [focused, setFocused] = useState<number | null>(null);
  const stop = bars.find((each) => each.at === focused) ?? bars.findLast((each) => each.at <= now) ?? bars[0];
  return bars.map((bar) => {
    const isComing = bar.at >= now;
    const text = barText(bar, seconds, isComing, viewer);
    return (
      <g
        key={bar.at}
        className={isComing ? "lane-bar coming" : "lane-bar"}
        role="button"
        tabIndex={bar === stop ? 0 : -1}
        aria-label={text.replaceAll("\n", "; ")}
        data-mark={new Date(bar.at).toISOString()}
        data-closer
        data-tip={`${text}\nClick to zoom in`}
        onFocus={() => setFocused(bar.at)}
      >
        <rect className="lane-bar-room" x={bar.x} y={0} width={bar.width} height={34} />
        {segmentsOf(bar, most).map(({ name, y, height }) => (
          <rect
            key={name}
            className={`lane-bar-${name}`}
            x={bar.x + 0.5}
            y={y}
            width={Math.max(1, bar.width - 1)}
            height={height}
          />
        ))}
      </g>
    );
  });
}

function barText(bar: LaneBar, seconds: number, isComing: boolean, viewer: string): string {
  const end = bar.at + seconds * 1_000;
  const day = dayText(bar.at, viewer).replace(/ \d{4}$/, "");
  return `${countWords(bar, isComing)}\n${day}, ${clockText(bar.at, viewer)}–${clockText(end, viewer)}`;
}
