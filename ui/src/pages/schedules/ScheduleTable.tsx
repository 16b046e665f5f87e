// Virtualised rows of the list, with placeholders for rows that are loading.
import { useTable } from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";
import { Table } from "../../parts/Table";
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
  const list = useRef<HTMLTableElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const { width, top } = usePlace(list, body);
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
    <Table
      frame={null}
      ref={list}
      role="table"
      aria-label="Schedules"
      aria-rowcount={total === null ? -1 : total + 1}
      className={cards ? "list cards" : "list"}
      head={{ role: "rowgroup", className: "list-head" }}
      headRow={{ role: "row", "aria-rowindex": 1, className: "list-row", style: grid }}
      heads={visible.map(({ id, columnDef }) => ({
        id,
        text: id === "choose" && chooseAll ? <ChooseAll {...chooseAll} /> : String(columnDef.header),
        hidden: id === "menu",
        role: "columnheader",
        className: `cell-${id}`,
      }))}
      body={{ ref: body, role: "rowgroup", className: "list-body", style: { height: virtual.getTotalSize() } }}
    >
      {shown.map(({ index, start }) => {
        const row = found.get(uidAt(chain, index) ?? "");
        return (
          <tr
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
              <td role="cell" className="list-place" style={{ height: cards ? CARD_HIGH : undefined }}>
                <span className="visually-hidden">Loading…</span>
              </td>
            ) : (
              row.getVisibleCells().map((cell) => (
                <td key={cell.id} role="cell" className={`cell-${cell.column.id}`}>
                  <table.FlexRender cell={cell} />
                </td>
              ))
            )}
          </tr>
        );
      })}
    </Table>
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
  list: RefObject<HTMLElement | null>,
  body: RefObject<HTMLElement | null>,
): { width: number; top: number } {
  const [place, setPlace] = useState({ width: 1024, top: 0 });
  useLayoutEffect(() => {
    const look = () => {
      const width = list.current!.clientWidth;
      const top = Math.round(body.current!.getBoundingClientRect().top + window.scrollY);
      setPlace((now) => (now.width === width && now.top === top ? now : { width, top }));
    };
    look();
    const watching = new ResizeObserver(look);
    watching.observe(list.current!);
    for (const each of list.current!.parentElement?.children ?? []) if (each !== list.current) watching.observe(each);
    return () => watching.disconnect();
  }, [list, body]);
  return place;
}
