// The lane of one schedule: its name, its marks and the bars of long runs.
import { Link } from "@tanstack/react-router";
import { memo, useMemo, useState } from "react";
import { MarkShape } from "../../marks/Mark";
import { isolated } from "../../parts/isolated";
import { position, type Span } from "../../time/axis";
import { counted } from "../../words";
import { countText, groupMarks, runBars, type Group } from "./groups";
import { BASE } from "./laneBars";
import { LaneBars } from "./LaneBars";
import { ATTENTION_TEXTS, CALM, type Lane } from "./lanes";
import { markText } from "./texts";

interface Props {
  lane: Lane;
  place: number;
  of: number;
  top: number;
  height: number;
  span: Span;
  width: number;
  now: number;
  grid: string;
  /** The start of the first bar of a dense lane, and the length of a bar. */
  origin: number;
  seconds: number;
  viewer: string;
}

export const LaneRow = memo(function LaneRow({ lane, place, of, top, height, ...drawn }: Props) {
  return (
    <div
      className={lane.attention === CALM ? "lane" : "lane troubled"}
      role="listitem"
      aria-posinset={place}
      aria-setsize={of}
      data-row
      data-lane={lane.id}
      data-place={place}
      style={{ transform: `translateY(${top}px)`, height }}
    >
      <div className="lane-name" data-tip={tipOf(lane)}>
        {lane.attention === CALM ? null : <AttentionSign attention={lane.attention} />}
        <Link to="/schedules/$scheduleId" params={{ scheduleId: lane.id }} className="cut">
          <bdi>{lane.title}</bdi>
        </Link>
      </div>
      <Plot lane={lane} {...drawn} />
    </div>
  );
});

function tipOf(lane: Lane): string {
  const about = [
    lane.name && lane.name !== lane.id ? `${isolated(lane.name)} (${lane.id})` : lane.id,
    lane.zone,
    ATTENTION_TEXTS[lane.attention],
  ];
  return about.filter(Boolean).join("\n");
}

function AttentionSign({ attention }: { attention: Lane["attention"] }) {
  const [tone, shape] =
    attention === 0
      ? (["bad", "cross"] as const)
      : attention === 1
        ? (["warn", "triangle"] as const)
        : (["quiet", "triangle"] as const);
  return (
    <svg
      viewBox="0 0 12 12"
      width={11}
      height={11}
      className={`tone-${tone}`}
      role="img"
      aria-label={ATTENTION_TEXTS[attention]}
    >
      <MarkShape shape={shape} />
    </svg>
  );
}

const MIDDLE = 17;
const HIGH = 34;
const NO_ROWS: Lane["rows"] = [];

function Plot({
  lane,
  span,
  width,
  now,
  grid,
  origin,
  seconds,
  viewer,
}: Omit<Props, "place" | "of" | "top" | "height">) {
  const rows = lane.buckets === null ? lane.rows : NO_ROWS;
  const groups = useMemo(() => groupMarks(rows, span, width), [rows, span, width]);
  const bars = useMemo(() => runBars(rows, span, width, now), [rows, span, width, now]);
  const [focused, setFocused] = useState<string | null>(null);
  const stop =
    groups.find((each) => each.key === focused) ??
    groups.find((each) => each.x >= position(now, span, width)) ??
    groups.at(-1);
  const x = position(now, span, width);
  return (
    <svg
      className="lane-plot"
      width={width}
      height={HIGH}
      data-plot
      role="group"
      aria-label={lane.buckets === null ? counted(groups.length, "mark") : "Counts over time"}
    >
      <g className="moves">
        {x > 0 ? <rect className="past" x={0} y={0} width={Math.min(width, x)} height={HIGH} /> : null}
        <path className="grid-line" d={grid} />
        <path className="lane-line" d={`M0 ${lane.buckets === null ? MIDDLE : BASE + 0.5}H${width}`} />
        {bars.map((bar) => (
          <rect
            key={bar.key}
            className={`run-bar tone-${bar.tone}`}
            x={bar.x}
            y={MIDDLE - 5}
            width={bar.width}
            height={10}
            rx={3}
          />
        ))}
        {x >= 0 && x <= width ? <path className="now-line" d={`M${x.toFixed(1)} 0V${HIGH}`} /> : null}
        {lane.buckets === null ? null : (
          <LaneBars
            buckets={lane.buckets}
            origin={origin}
            seconds={seconds}
            span={span}
            width={width}
            now={now}
            viewer={viewer}
          />
        )}
        {groups.map((group) => (
          <MarkOrPill
            key={group.key}
            group={group}
            text={markText(group, lane.zone, viewer)}
            isStop={group === stop}
            onFocus={() => setFocused(group.key)}
          />
        ))}
      </g>
    </svg>
  );
}

function MarkOrPill({
  group,
  text,
  isStop,
  onFocus,
}: {
  group: Group;
  text: string;
  isStop: boolean;
  onFocus: () => void;
}) {
  return (
    <g
      className={`lane-mark tone-${group.look.tone}${group.worst.predicted ? " coming" : ""}${group.worst.predicted && group.worst.certainty !== "certain" ? ` coming-${group.worst.certainty ?? "unknown"}` : ""}`}
      transform={`translate(${group.x.toFixed(1)} ${MIDDLE - 11})`}
      role="button"
      tabIndex={isStop ? 0 : -1}
      aria-label={text.replaceAll("\n", "; ")}
      data-mark={group.worst.at}
      data-tip={text}
      onFocus={onFocus}
    >
      <rect
        className={group.count > 1 ? "pill" : "pill-room"}
        width={group.count > 1 ? group.width - 2 : group.width}
        height={20}
        y={1}
        rx={10}
      />
      <g transform={group.count > 1 ? "translate(4.5 6) scale(0.83)" : "translate(0.5 5)"}>
        <MarkShape shape={group.look.shape} />
      </g>
      {group.count > 1 ? (
        <text x={17} y={15} aria-hidden="true">
          {countText(group.count)}
        </text>
      ) : null}
    </g>
  );
}
