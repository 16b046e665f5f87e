// The rows of the list: only those near the window exist, and the next page is asked for before the end is seen.
import { useTable } from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";
import { columns, features, gridOf } from "./columns";
import type { Row } from "./useSchedules";
import type { ColumnId } from "./visibility";

const ROW_HIGH = 64;
const CARD_HIGH = 170;
const CARD_GAP = 10;
/** Narrower than this, a row becomes a card. */
const CARDS_BELOW = 880;
const OVERSCAN = 6;
/** So many rows before the last one that is loaded, the next page is asked for. */
const AHEAD = 30;

export interface TableProps {
  rows: readonly Row[];
  hidden: readonly ColumnId[];
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => void;
  chooseAll: { checked: boolean; some: boolean; toggle: () => void } | null;
  isChosen: (id: string) => boolean;
}

export function ScheduleTable({ rows, hidden, hasMore, isLoadingMore, loadMore, chooseAll, isChosen }: TableProps) {
  const frame = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const { width, top } = usePlace(frame, body);
  const cards = width < CARDS_BELOW;
  const columnVisibility = useMemo(
    () => ({
      choose: chooseAll !== null,
      ...Object.fromEntries(hidden.filter((id) => id !== "duration").map((id) => [id, false])),
    }),
    [hidden, chooseAll === null],
  );
  const table = useTable({
    features,
    columns,
    data: rows as Row[],
    getRowId: (row) => row.uid,
    state: { columnVisibility },
  });
  const found = table.getRowModel().rows;
  const virtual = useWindowVirtualizer({
    count: found.length,
    estimateSize: () => (cards ? CARD_HIGH : ROW_HIGH),
    overscan: OVERSCAN,
    gap: cards ? CARD_GAP : 0,
    scrollMargin: top,
    getItemKey: (index) => found[index]?.id ?? index,
    useFlushSync: false,
  });
  useEffect(() => virtual.measure(), [cards, virtual]);
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && !isLoadingMore && last >= found.length - AHEAD) loadMore();
  }, [last, found.length, hasMore, isLoadingMore, loadMore]);
  const visible = table.getVisibleLeafColumns();
  const grid = { gridTemplateColumns: cards ? undefined : gridOf(visible.map(({ id }) => id)) };
  return (
    <div
      ref={frame}
      role="table"
      aria-label="Schedules"
      aria-rowcount={hasMore ? -1 : found.length + 1}
      className={cards ? "list cards" : "list"}
    >
      <div role="rowgroup" className="list-head">
        <div role="row" aria-rowindex={1} className="list-row" style={grid}>
          {visible.map(({ id, columnDef }) => (
            <div key={id} role="columnheader" className={`cell-${id}`}>
              {id === "choose" && chooseAll ? (
                <ChooseAll {...chooseAll} />
              ) : id === "menu" ? (
                <span className="visually-hidden">Actions</span>
              ) : (
                String(columnDef.header)
              )}
            </div>
          ))}
        </div>
      </div>
      <div ref={body} role="rowgroup" className="list-body" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, start, key }) => {
          const row = found[index]!;
          return (
            <div
              key={key}
              ref={cards ? virtual.measureElement : undefined}
              role="row"
              aria-rowindex={index + 2}
              data-row
              data-index={index}
              className={isChosen(row.original.schedule_id) ? "list-row chosen" : "list-row"}
              style={{ ...grid, height: cards ? undefined : ROW_HIGH, transform: `translateY(${start - top}px)` }}
            >
              {row.getVisibleCells().map((cell) => (
                <div key={cell.id} role="cell" className={`cell-${cell.column.id}`}>
                  <table.FlexRender cell={cell} />
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function ChooseAll({ checked, some, toggle }: { checked: boolean; some: boolean; toggle: () => void }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    box.current!.indeterminate = some && !checked;
  }, [some, checked]);
  return (
    <label className="check">
      <input ref={box} type="checkbox" checked={checked} onChange={toggle} />
      <span className="list-choose-all">Choose all that are loaded</span>
    </label>
  );
}

/** How wide the list is and where its rows begin, asked for only when something around it has changed its size. */
function usePlace(
  frame: RefObject<HTMLDivElement | null>,
  body: RefObject<HTMLDivElement | null>,
): { width: number; top: number } {
  const [place, setPlace] = useState({ width: 1024, top: 0 });
  useLayoutEffect(() => {
    const look = () => {
      const width = frame.current!.clientWidth;
      const top = Math.round(body.current!.getBoundingClientRect().top + window.scrollY);
      setPlace((now) => (now.width === width && now.top === top ? now : { width, top }));
    };
    look();
    const watching = new ResizeObserver(look);
    watching.observe(frame.current!);
    for (const each of frame.current!.parentElement?.children ?? []) if (each !== frame.current) watching.observe(each);
    return () => watching.disconnect();
  }, [frame, body]);
  return place;
}
