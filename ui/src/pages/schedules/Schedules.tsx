// List of schedules with search, filters, views and bulk actions.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useMay } from "../../api/session";
import { ActionDialog, ManyDialog, type ActionName, type OneAction } from "../../parts/actions";
import { Button, buttonClass } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { CheckField } from "../../parts/Field";
import { HistoryDialog } from "../../parts/History";
import { Page } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { schedulesText } from "../../parts/bulk";
import type { Chain } from "./chain";
import { ChosenBar } from "./ChosenBar";
import { ListContext, useDoings, type ListDoings } from "./context";
import { FilterBar } from "./FilterBar";
import { filtersOf, isFiltered, manyOf, searchOf, type Filters } from "./filters";
import { nameOf, zoneOf } from "./row";
import "./schedules.css";
import { ScheduleTable, type TableProps } from "./ScheduleTable";
import { allToggled, hasAny, isAll, isChosen, NONE_CHOSEN, toggled, type Selection } from "./selection";
import { useHealth, useSchedules, type Row, type Total } from "./useSchedules";
import { Views } from "./Views";
import { COLUMNS_KEY, HIDEABLE, hiddenOf, withHidden, type ColumnId } from "./visibility";

type Asked = { one: Row; action: OneAction | "history" } | { many: ActionName } | null;

function useFilters(): [Filters, (part: Partial<Filters>) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const filters = useMemo(() => filtersOf(search), [search]);
  const change = useCallback(
    (part: Partial<Filters>) => {
      const next = (before: Record<string, unknown>) => ({ ...before, ...searchOf({ ...filtersOf(before), ...part }) });
      void navigate({ to: "/schedules", search: next as never, replace: true, resetScroll: false });
    },
    [navigate],
  );
  return [filters, change];
}

function useHidden(): [readonly ColumnId[], (id: ColumnId, isHidden: boolean) => void] {
  const [hidden, setHidden] = useState(() => hiddenOf(localStorage.getItem(COLUMNS_KEY)));
  const hide = (id: ColumnId, isHidden: boolean) => {
    const next = withHidden(hidden, id, isHidden);
    localStorage.setItem(COLUMNS_KEY, next.join(","));
    setHidden(next);
  };
  return [hidden, hide];
}

export default function Schedules() {
  const [filters, change] = useFilters();
  const [hidden, hide] = useHidden();
  const [choosing, setChoosing] = useState(false);
  const mayWrite = useMay("write");
  return (
    <Page
      title="Schedules"
      actions={
        <>
          <Button onClick={() => setChoosing(true)}>Columns</Button>
          {mayWrite ? (
            <Link to="/schedules/new" className={buttonClass({ kind: "primary" })}>
              Create schedule
            </Link>
          ) : null}
        </>
      }
    >
      <Views filters={filters} />
      <FilterBar filters={filters} onChange={change} />
      <List filters={filters} hidden={hidden} onChange={change} />
      {choosing ? <ColumnsDialog hidden={hidden} hide={hide} onClose={() => setChoosing(false)} /> : null}
    </Page>
  );
}

function ColumnsDialog({
  hidden,
  hide,
  onClose,
}: {
  hidden: readonly ColumnId[];
  hide: (id: ColumnId, isHidden: boolean) => void;
  onClose: () => void;
}) {
  return (
    <Dialog title="Columns" onClose={onClose}>
      {HIDEABLE.map(([id, text]) => (
        <CheckField
          key={id}
          label={text}
          checked={!hidden.includes(id)}
          onChange={(event) => hide(id, !event.target.checked)}
        />
      ))}
    </Dialog>
  );
}

interface ListProps {
  filters: Filters;
  hidden: readonly ColumnId[];
  onChange: (part: Partial<Filters>) => void;
}

/** Dialogs stay open when the list becomes empty, for example after the last schedule is deleted. */
function List({ filters, hidden, onChange }: ListProps) {
  const found = useSchedules(filters);
  const [asked, setAsked] = useState<Asked>(null);
  const { doings, selection, setSelection, ids } = useList(found.chain, filters, hidden, onChange, setAsked);
  const all = {
    checked: isAll(selection, ids),
    some: hasAny(selection),
    toggle: () => setSelection(allToggled(selection, ids)),
  };
  return (
    <ListContext value={doings}>
      <Rows found={found} filters={filters} hidden={hidden} chooseAll={doings.mayOperate ? all : null} />
      {hasAny(selection) ? (
        <ChosenBar
          selection={selection}
          canBeMore={filters.status !== "deleted"}
          matching={filters.deleted || found.total === null || found.total.isBounded ? null : found.total.count}
          onEverything={() => setSelection({ ...NONE_CHOSEN, everything: true })}
          onClear={() => setSelection(NONE_CHOSEN)}
          onAct={(many) => setAsked({ many })}
        />
      ) : null}
      <Dialogs
        asked={asked}
        filters={filters}
        selection={selection}
        onClose={() => setAsked(null)}
        onStarted={() => setSelection(NONE_CHOSEN)}
      />
    </ListContext>
  );
}

type Found = ReturnType<typeof useSchedules>;

interface RowsProps extends Pick<ListProps, "filters" | "hidden"> {
  found: Found;
  chooseAll: TableProps["chooseAll"];
}

function Rows({ found, filters, hidden, chooseAll }: RowsProps) {
  const { isChosen: isRowChosen } = useDoings();
  const { chain, length, total, error, again } = found;
  if (found.isPending) return <Loading />;
  if (error && chain.count === 0) return <FailureNote failure={error} again={again} />;
  if (length === 0) return <Nothing filters={filters} />;
  return (
    <>
      <div className={found.isWaiting ? "list-frame waiting" : "list-frame"} aria-busy={found.isWaiting}>
        <ScheduleTable
          rows={found.rows}
          chain={chain}
          length={length}
          total={total === null || total.isBounded ? null : Math.max(total.count, chain.count)}
          hidden={hidden}
          onRange={found.setRange}
          chooseAll={chooseAll}
          isChosen={isRowChosen}
        />
      </div>
      <div className="row list-foot">
        <span role="status" className="muted">
          {manyText(total, chain.count)}
        </span>
        {error ? <FailureNote failure={error} again={again} /> : null}
      </div>
    </>
  );
}

function manyText(total: Total | null, seen: number): string {
  const many = schedulesText(Math.max(total?.count ?? 0, seen));
  return `${total === null || total.isBounded ? "At least " : ""}${many}, newest first`;
}

/** Selection and actions of the list. A change of filters clears the selection. */
function useList(
  chain: Chain,
  filters: Filters,
  hidden: readonly ColumnId[],
  onChange: (part: Partial<Filters>) => void,
  setAsked: (asked: Asked) => void,
) {
  const [selection, setSelection] = useState<Selection>(NONE_CHOSEN);
  const health = useHealth();
  const mayOperate = useMay("operate");
  const mayWrite = useMay("write");
  const ids = useMemo(() => chain.seen.flatMap((page) => page.ids), [chain]);
  const named = JSON.stringify(searchOf(filters));
  useEffect(() => setSelection(NONE_CHOSEN), [named]);
  const doings: ListDoings = {
    health,
    withDurations: !hidden.includes("duration"),
    mayOperate,
    mayWrite,
    isChosen: (id) => isChosen(selection, id),
    choose: (id, range) => setSelection((now) => toggled(now, ids, id, range)),
    act: (one, action) => setAsked({ one, action }),
    onLabel: (label) => onChange({ label: [...new Set([...filters.label, label])] }),
  };
  return { doings, selection, setSelection, ids };
}

interface DialogsProps {
  asked: Asked;
  filters: Filters;
  selection: Selection;
  onClose: () => void;
  onStarted: () => void;
}

function Dialogs({ asked, filters, selection, onClose, onStarted }: DialogsProps) {
  if (asked === null) return null;
  if ("many" in asked) {
    const many = selection.everything ? manyOf(filters) : { kind: "ids" as const, ids: [...selection.ids] };
    const close = (started: boolean) => {
      if (started) onStarted();
      onClose();
    };
    return <ManyDialog action={asked.many} many={many} onClose={close} />;
  }
  const { one, action } = asked;
  if (action === "history") return <HistoryDialog scheduleId={one.schedule_id} zone={zoneOf(one)} onClose={onClose} />;
  const on = { scheduleId: one.schedule_id, name: nameOf(one), paused: one.status === "paused", zone: zoneOf(one) };
  return <ActionDialog action={action} on={on} onClose={onClose} />;
}

function Nothing({ filters }: { filters: Filters }) {
  const mayWrite = useMay("write");
  if (isFiltered(filters)) {
    return (
      <Empty title="No matching schedules">
        <p>No schedule in this namespace matches all filters.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No schedules yet">
      <p>
        A schedule runs an action at specified times. The list shows the next run of each schedule, its last 30
        occurrences and their duration.
      </p>
      {mayWrite ? (
        <>
          <Link to="/schedules/new" className={buttonClass({ kind: "primary" })}>
            Create schedule
          </Link>
          <p className="small muted">Starts from a working example</p>
        </>
      ) : (
        <p>Read-only access: your token cannot create schedules.</p>
      )}
      <p className="small">
        Command line: <code>horarium schedule create --help</code>
      </p>
    </Empty>
  );
}
