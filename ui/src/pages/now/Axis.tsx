// The time axis in the viewer's zone, with clock changes.
import { memo } from "react";
import { axisText, position, type AxisMark, type Span } from "../../time/axis";
import { useNow } from "../../time/now";
import { clockText } from "../../time/zones";

interface Props {
  marks: readonly AxisMark[];
  span: Span;
  width: number;
  now: number;
  zone: string;
}

const HEIGHT = 34;

export const Axis = memo(function Axis({ marks, span, width, now, zone }: Props) {
  const x = position(now, span, width);
  const inView = x >= 0 && x <= width;
  return (
    <svg className="axis" width={width} height={HEIGHT} role="img" aria-label={`Time axis (${zone})`}>
      <g className="moves">
        {marks.map((mark) => (
          <AxisText key={mark.at} mark={mark} x={position(mark.at, span, width)} width={width} zone={zone} />
        ))}
      </g>
      {inView ? (
        <g className="axis-now" transform={`translate(${x.toFixed(1)} 0)`}>
          <path d="M0 0V34" />
          <rect x={nowX(x, width)} y={1} width={46} height={15} rx={7.5} />
          <text x={nowX(x, width) + 23} y={12.5} textAnchor="middle">
            <Clock zone={zone} />
          </text>
        </g>
      ) : null}
    </svg>
  );
});

/** Separate, as the line moves in larger steps than a minute when a week is shown. */
function Clock({ zone }: { zone: string }) {
  return clockText(Math.floor(useNow() / 60_000) * 60_000, zone);
}

/** Keep the label of now inside the view. */
function nowX(x: number, width: number): number {
  return Math.max(-x, Math.min(width - x - 46, -23));
}

function AxisText({ mark, x, width, zone }: { mark: AxisMark; x: number; width: number; zone: string }) {
  const anchor = x < 24 ? "start" : x > width - 24 ? "end" : "middle";
  const textX = anchor === "start" ? Math.max(1, x) : anchor === "end" ? Math.min(width - 1, x) : x;
  return (
    <g>
      <path className="grid-line" d={`M${x.toFixed(1)} 20V34`} />
      <text
        x={textX}
        y={30}
        textAnchor={anchor}
        className={mark.isDay ? "axis-day" : "axis-hour"}
        dx={anchor === "middle" ? 0 : anchor === "start" ? 3 : -3}
      >
        {axisText(mark, zone)}
      </text>
      {mark.shifted !== 0 ? (
        <g className="axis-shift">
          <text x={textX} y={13} textAnchor={anchor}>
            {shiftText(mark.shifted)}
          </text>
        </g>
      ) : null}
    </g>
  );
}

/** "clock +1 h". */
export function shiftText(minutes: number): string {
  const far = Math.abs(minutes);
  return `clock ${minutes > 0 ? "+" : "−"}${far % 60 === 0 ? `${far / 60} h` : `${far} min`}`;
}
