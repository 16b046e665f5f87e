// A live list of runs with filters from the URL and bulk actions.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { useOfAll } from "../../api/everywhere";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { LoadMore } from "../../parts/LoadMore";
import { Page } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { BulkStop, type StopChoice } from "./BulkStop";
import { choiceOf, filtersOf, isFiltered, searchOf, type RunFilters } from "./filters";
import { RunFilterBar } from "./RunFilterBar";
import "./runs.css";
import { RunTable } from "./RunTable";
import { runsText } from "./stopping";
import { LIVE_PAGES, useRunRows } from "./useRunRows";

export const MOST_CHOSEN = 100;

export default function Runs() {
  const filters = { ...filtersOf(useSearch({ strict: false })), all: useOfAll() };
  const navigate = useNavigate();
  const change = (next: RunFilters) => {
    setChosen(new Set());
    void navigate({ to: "/runs", search: searchOf(next) as never });
  };
  const list = useRunRows(filters);
  const operates = useMay("operate");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [stopping, setStopping] = useState<StopChoice | null>(null);
  const choose = useCallback(
    (id: string, on: boolean) =>
      setChosen((now) => {
        const next = new Set(now);
        if (on && next.size < MOST_CHOSEN) next.add(id);
        if (!on) next.delete(id);
        return next;
      }),
    [],
  );
  const all = choiceOf(filters);
  return (
    <Page
      title="Runs"
      about={`Active and past runs.${filters.all ? " All namespaces." : ""}`}
      actions={
        operates && all !== null ? (
          <Button onClick={() => setStopping({ text: all.text, filter: all.filter })}>{`Stop ${all.text}`}</Button>
        ) : null
      }
    >
      <RunFilterBar key={JSON.stringify(filters)} filters={filters} onChange={change} />
      {list.pages.error ? <FailureNote failure={list.pages.error} again={() => void list.pages.refetch()} /> : null}
      {list.rows.length > 0 ? (
        <>
          <Above {...{ chosen, fresh: list.fresh }} onStop={setStopping} onClear={() => setChosen(new Set())} />
          <RunTable
            rows={list.rows}
            chosen={operates && !filters.all ? chosen : null}
            ofAll={filters.all}
            onChoose={choose}
          />
          <div className="row">
            <LoadMore of={list.pages} />
            {list.isLive ? null : (
              <span className="muted">Only the first {LIVE_PAGES} pages update live. Reload to refresh all pages.</span>
            )}
          </div>
        </>
      ) : list.pages.isPending ? (
        <Loading />
      ) : list.pages.error ? null : (
        <NoRuns filtered={isFiltered(filters)} />
      )}
      {stopping ? (
        <BulkStop
          choice={stopping}
          onClose={(started) => {
            setStopping(null);
            if (started) setChosen(new Set());
          }}
        />
      ) : null}
    </Page>
  );
}

interface AboveProps {
  chosen: ReadonlySet<string>;
  fresh: number;
  onStop: (choice: StopChoice) => void;
  onClear: () => void;
}

/** The number of newer runs and the actions on selected runs. */
function Above({ chosen, fresh, onStop, onClear }: AboveProps) {
  const many = chosen.size;
  return (
    <div className="floating" role="status">
      {fresh > 0 ? (
        <Button small kind="primary" onClick={() => window.scrollTo({ top: 0 })}>
          ↑ {fresh} new
        </Button>
      ) : null}
      {many > 0 ? (
        <div className="chosen-bar">
          <span>
            {many} selected{many === MOST_CHOSEN ? " (maximum)" : ""}
          </span>
          <Button small kind="danger" onClick={() => onStop({ text: runsText(many), filter: { ids: [...chosen] } })}>
            Stop runs
          </Button>
          <Button small kind="quiet" onClick={onClear}>
            Clear selection
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No matching runs" />;
  return (
    <Empty title="No runs yet">
      <p>
        Each run appears here with its state, delay and duration. Runs start when a schedule fires or when you trigger
        it.
      </p>
      <div className="row">
        <Link to="/schedules/new" className="button primary">
          Create schedule
        </Link>
        <Link to="/schedules" className="button">
          View schedules
        </Link>
      </div>
    </Empty>
  );
}
