// A year calendar: the fires, skips and excluded dates of each day. One tab stop; arrow keys move between days.
import { memo, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Table } from "./Table";
import {
  counted,
  dayByKey,
  dayWords,
  isoDate,
  LISTED_TEXTS,
  levelOf,
  monthsOf,
  rangeOf,
  WEEKDAYS,
  yearWords,
  type Listed,
  type Month,
  type Range,
  type YearDay,
} from "./year";
import "./year.css";

interface Props {
  year: number;
  days: readonly YearDay[];
  /** The names of listed calendar dates, by date, with or without an occurrence. */
  closed?: Readonly<Record<string, string>>;
  /** For a calendar page: whether its listed dates are excluded or the only included ones. */
  listed?: Listed;
  /** Called when a day is clicked; without it the grid is read-only. */
  onDay?: (date: string) => void;
  /** Today in the schedule's time zone, shown with a frame. */
  today?: string;
  chosen?: string | null;
  /** The service stopped counting at its limit. */
  bounded?: boolean;
  /** The accessible name of the grid. */
  label?: string;
}

export function YearGrid({ year, days, closed, listed, onDay, today, chosen, bounded = false, label }: Props) {
  const byDate = useMemo(() => new Map(days.map((day) => [day.date, day])), [days]);
  const range = useMemo(() => rangeOf(days), [days]);
  const months = useMemo(() => monthsOf(year), [year]);
  const grid = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<string | null>(null);
  const stop = [at, chosen, today, isoDate(year, 1, 1)].find((date) =>
    date?.startsWith(`${String(year).padStart(4, "0")}-`),
  )!;
  const move = (event: KeyboardEvent) => {
    const from = (event.target as HTMLElement).dataset["date"];
    const to = from === undefined ? null : dayByKey(from, event.key);
    if (to === null) return;
    event.preventDefault();
    setAt(to);
    grid.current?.querySelector<HTMLElement>(`[data-date="${to}"]`)?.focus();
  };
  const told =
    at !== null && at === stop
      ? dayWords(at, byDate.get(at), closed?.[at], listed)
      : about(year, days, closed, bounded);
  return (
    <div className="year" role="group" aria-label={label ?? `Calendar of ${year}`}>
      <div className="year-told" aria-hidden="true">
        {told}
      </div>
      <div className="year-frame">
        <div className="year-months" ref={grid} onKeyDown={move} onMouseLeave={() => setAt(null)}>
          {months.map((month) => (
            <MonthTable
              key={month.month}
              month={month}
              year={year}
              byDate={byDate}
              closed={closed}
              listed={listed}
              range={range}
              onDay={onDay}
              today={today}
              chosen={chosen ?? undefined}
              stop={month.weeks.some((week) => week.includes(stop)) ? stop : undefined}
              onPoint={setAt}
            />
          ))}
        </div>
      </div>
      <Legend
        days={days}
        range={range}
        marked={closed !== undefined && Object.keys(closed).length > 0 ? (listed ?? "closed") : null}
      />
    </div>
  );
}

/** The summary of the year. A calendar has no fires, so its listed dates are counted. */
function about(year: number, days: readonly YearDay[], closed: Props["closed"], bounded: boolean): string {
  const named = closed === undefined ? 0 : Object.keys(closed).length;
  return days.length === 0 && closed !== undefined
    ? `${named} ${named === 1 ? "day" : "days"} in ${year}`
    : yearWords(year, days, bounded);
}

const WEEKDAY_HEADS = WEEKDAYS.map((name) => ({ id: name, text: <abbr title={name}>{name.slice(0, 2)}</abbr> }));

interface MonthProps {
  month: Month;
  year: number;
  byDate: ReadonlyMap<string, YearDay>;
  closed?: Readonly<Record<string, string>>;
  listed?: Listed;
  range: Range;
  onDay?: (date: string) => void;
  today?: string;
  chosen?: string;
  /** The tab stop, if it is in this month: only that month renders again when it moves. */
  stop?: string;
  onPoint: (date: string) => void;
}

const MonthTable = memo(function MonthTable({
  month,
  year,
  byDate,
  closed,
  listed,
  range,
  onDay,
  today,
  chosen,
  stop,
  onPoint,
}: MonthProps) {
  const cell = (date: string) => {
    const day = byDate.get(date);
    const shared = {
      className: dayClass(
        day,
        closed?.[date] === undefined ? "" : (listed ?? "closed"),
        range,
        date === today,
        date === chosen,
      ),
      "data-date": date,
      "aria-label": dayWords(date, day, closed?.[date], listed),
      "aria-current": date === today ? ("date" as const) : undefined,
      tabIndex: date === stop ? 0 : -1,
      onMouseEnter: () => onPoint(date),
      onFocus: () => onPoint(date),
    };
    const number = Number(date.slice(8));
    if (onDay === undefined)
      return (
        <span {...shared} role="img">
          {number}
        </span>
      );
    return (
      <button
        {...shared}
        type="button"
        aria-pressed={listed === undefined ? date === chosen : closed?.[date] !== undefined}
        onClick={() => onDay(date)}
      >
        {number}
      </button>
    );
  };
  return (
    <Table
      frame={null}
      className="year-month"
      caption={
        <>
          {month.name}
          <span className="visually-hidden"> {year}</span>
        </>
      }
      heads={WEEKDAY_HEADS}
    >
      {month.weeks.map((week, index) => (
        <tr key={index}>
          {week.map((date, column) => (
            <td key={column}>{date === null ? null : cell(date)}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
});

function dayClass(
  day: YearDay | undefined,
  marked: Listed | "",
  range: Range,
  isToday: boolean,
  isChosen: boolean,
): string {
  return [
    "year-day",
    `level-${levelOf(day?.fires ?? 0, range)}`,
    day !== undefined && day.skips > 0 ? (day.fires > 0 ? "some-skipped" : "all-skipped") : "",
    marked,
    isToday ? "today" : "",
    isChosen ? "chosen" : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** The legend of the looks that occur in the grid. */
function Legend({ days, range, marked }: { days: readonly YearDay[]; range: Range; marked: Listed | null }) {
  const levels: readonly (readonly [look: string, text: string])[] =
    range.least < range.most
      ? [
          ["level-1", "Few fires"],
          ["level-2", ""],
          ["level-3", ""],
          ["level-4", "Many"],
        ]
      : range.most > 0
        ? [["level-2", range.most === 1 ? "1 fire" : `${counted(range.most)} fires`]]
        : [];
  const entries = [
    ...levels,
    ...(days.some((day) => day.skips > 0 && day.fires > 0) ? [["level-2 some-skipped", "Some skipped"] as const] : []),
    ...(days.some((day) => day.skips > 0 && day.fires === 0) ? [["all-skipped", "All skipped"] as const] : []),
    ...(marked === null ? [] : [[marked, LISTED_TEXTS[marked]] as const]),
  ];
  return (
    <div className="year-legend" aria-hidden="true">
      {entries.map(([look, text]) => (
        <span key={look} className={text === "" || look === "level-1" ? "year-key near" : "year-key"}>
          <span className={`year-day ${look}`} />
          {text}
        </span>
      ))}
    </div>
  );
}
