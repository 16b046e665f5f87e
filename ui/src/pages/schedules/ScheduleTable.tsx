// Virtualised rows of the list, with placeholders for rows that are loading.
import { useTable } from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";
import { uidAt, type Chain, type Range } from "./chain";
import { columns, features, gridOf } from "./columns";
import type { Row } from "./useSchedules";
import type { ColumnId } from "./visibility";

const ROW_HIGH = 64;
const CARD_HIGH = 170;
const CARD_GAP = 10;
/** Narrower than this, a row becomes a card. */
const CARDS_BELOW = 880;
const OVERSCAN = 6;
/** Report the visible range in steps, because each report renders the list again. */
const STEP = 10;

export interface TableProps {
  /** Loaded rows. */
  rows: readonly Row[];
  chain: Chain;
  /** Number of rows, including those not loaded. */
  length: number;
  /** null = unknown. */
  total: number | null;
  hidden: readonly ColumnId[];
  onRange: (range: Range) => void;
  chooseAll: { checked: boolean; some: boolean; toggle: () => void } | null;
  isChosen: (id: string) => boolean;
}

export function ScheduleTable({ rows, chain, length, total, hidden, onRange, chooseAll, isChosen }: TableProps) {
  const frame = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const { width, top } = usePlace(frame, body);
  const cards = width < CARDS_BELOW;
  const mayChoose = chooseAll !== null;
  const columnVisibility = useMemo(
    () => ({
      choose: mayChoose,
      ...Object.fromEntries(hidden.filter((id) => id !== "duration").map((id) => [id, false])),
    }),
    [hidden, mayChoose],
  );
  const table = useTable({
    features,
    columns,
    data: rows,
    getRowId: (row) => row.uid,
    state: { columnVisibility },
  });
  const model = table.getRowModel();
  const found = useMemo(() => new Map(model.rows.map((row) => [row.id, row])), [model]);
  const keyAt = useCallback((index: number) => uidAt(chain, index) ?? index, [chain]);
  const virtual = useWindowVirtualizer({
    count: length,
    estimateSize: () => (cards ? CARD_HIGH : ROW_HIGH),
    overscan: OVERSCAN,
    gap: cards ? CARD_GAP : 0,
    scrollMargin: top,
    // All rows have the same height; a card keeps its measured height.
    getItemKey: cards ? keyAt : undefined,
    useFlushSync: false,
  });
  useEffect(() => virtual.measure(), [cards, virtual]);
  const shown = virtual.getVirtualItems();
  const first = Math.floor((shown[0]?.index ?? 0) / STEP) * STEP;
  const last = Math.ceil((shown.at(-1)?.index ?? 0) / STEP) * STEP;
  useEffect(() => onRange({ first, last }), [first, last, onRange]);
  const visible = table.getVisibleLeafColumns();
  const grid = { gridTemplateColumns: cards ? undefined : gridOf(visible.map(({ id }) => id)) };
  return (
    <div
      ref={frame}
      role="table"
      aria-label="Schedules"
      aria-rowcount={total === null ? -1 : total + 1}
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
        {shown.map(({ index, start }) => {
          const row = found.get(uidAt(chain, index) ?? "");
          return (
            <div
              key={keyAt(index)}
              ref={cards ? virtual.measureElement : undefined}
              role="row"
              aria-rowindex={index + 2}
              aria-busy={row === undefined}
              data-row={row && ""}
              data-index={index}
              className={row && isChosen(row.original.schedule_id) ? "list-row chosen" : "list-row"}
              style={{ ...grid, height: cards ? undefined : ROW_HIGH, transform: `translateY(${start - top}px)` }}
            >
              {row === undefined ? (
                <div role="cell" className="list-place" style={{ height: cards ? CARD_HIGH : undefined }}>
                  <span className="visually-hidden">Loading…</span>
                </div>
              ) : (
                row.getVisibleCells().map((cell) => (
                  <div key={cell.id} role="cell" className={`cell-${cell.column.id}`}>
                    <table.FlexRender cell={cell} />
                  </div>
                ))
              )}
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
      <span className="list-choose-all">Select all visible</span>
    </label>
  );
}

/** Width of the list and offset of its rows, measured when the size of an element around it changes. */
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
