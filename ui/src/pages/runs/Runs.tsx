// What has run, what runs and what waits: filtered by the address, live, and stopped many at a time.
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
      about={`What has run, what runs and what waits; the newest first.${filters.all ? " All namespaces." : ""}`}
      actions={
        operates && all !== null ? (
          <Button onClick={() => setStopping({ text: all.text, filter: all.filter })}>{`Stop ${all.text}…`}</Button>
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
              <span className="muted">Live for the first {LIVE_PAGES} pages only; reload to bring all up to date.</span>
            )}
          </div>
        </>
      ) : list.pages.isPending ? (
        <Loading />
      ) : list.pages.error ? null : (
        <NoRuns filtered={isFiltered(filters)} onAll={() => change(filtersOf({}))} />
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

/** What floats above the rows: that there are newer ones, and what can be done with the chosen ones. */
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
            {many} chosen{many === MOST_CHOSEN ? ", as many as fit in one go" : ""}
          </span>
          <Button small kind="danger" onClick={() => onStop({ text: runsText(many), filter: { ids: [...chosen] } })}>
            Stop…
          </Button>
          <Button small kind="quiet" onClick={onClear}>
            Choose none
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function NoRuns({ filtered, onAll }: { filtered: boolean; onAll: () => void }) {
  if (filtered) {
    return (
      <Empty title="No run fits these filters">
        <Button onClick={onAll}>Show all runs</Button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has run yet">
      <p>
        Each time a schedule fires, its run appears here, with its state, how late it was and how long it took. A
        schedule can also be run by hand on its page.
      </p>
      <div className="row">
        <Link to="/schedules/new" className="button primary">
          Create a schedule
        </Link>
        <Link to="/schedules" className="button">
          Schedules
        </Link>
      </div>
    </Empty>
  );
}
