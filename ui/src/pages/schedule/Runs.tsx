// Runs tab of a schedule: duration and delay charts, and the list of runs.
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { uiBase, type Schemas } from "../../api/client";
import { usePages } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { MISSED, reasonText, RUN_LOOKS } from "../../marks/outcomes";
import { SelectField } from "../../parts/Field";
import { LoadMore } from "../../parts/LoadMore";
import { Card } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { arriving, worldOf } from "../../shell/arriving";
import { serverNow } from "../../time/now";
import { durationText } from "../../time/zones";
import { WhyLink } from "./DecisionTable";
import { NO_RUNS, ORIGINS as ORIGIN_TEXTS } from "../../words";
import { barsOf, latenessOf } from "./runBars";
import { RunChart } from "./RunChart";
import type { ViewProps } from "./Schedule";
import { ORIGINS, STATES } from "./search";
import { makeSpeakable } from "./speakable";
import type { WholeSchedule } from "./whole";

const Lateness = lazy(() => {
  makeSpeakable();
  return arriving(() => import("./Lateness"), worldOf(uiBase));
});
const PAGE = 100;
// More bars than this are thinner than a pixel.
const MOST_BARS = 1_000;

type RunSummary = Schemas["RunSummary"];

export function Runs({ schedule, search, change }: ViewProps) {
  const zone = schedule.spec.timezone;
  const found = usePages("/api/schedules/{schedule_id}/runs", {
    path: { schedule_id: schedule.schedule_id },
    query: {
      include: "skips",
      page_size: PAGE,
      state: search.state === null ? undefined : [search.state],
      origin: search.origin === null ? undefined : [search.origin],
    },
  });
  const runs = useMemo(() => found.data?.pages.flatMap((page) => page.runs) ?? [], [found.data]);
  const isFiltered = search.state !== null || search.origin !== null;
  return (
    <>
      <Filters search={search} change={change} />
      {found.isPending ? <Loading /> : null}
      {found.error && runs.length === 0 ? (
        <FailureNote failure={found.error} again={() => void found.refetch()} />
      ) : null}
      {found.data && runs.length === 0 ? (
        <Nothing isFiltered={isFiltered} onAll={() => change({ state: null, origin: null })} />
      ) : null}
      {runs.length > 0 ? (
        <>
          <Charts runs={runs} zone={zone} />
          <RunTable runs={runs} schedule={schedule} />
          <div className="row">
            <LoadMore of={found} />
            <span className="muted" role="status">
              {runs.length} shown{found.hasNextPage ? ", more available" : ", all loaded"}
            </span>
          </div>
        </>
      ) : null}
    </>
  );
}

function Nothing({ isFiltered, onAll }: { isFiltered: boolean; onAll: () => void }) {
  if (isFiltered) {
    return (
      <Empty title="No matching runs">
        <p>
          <button type="button" className="button" onClick={onAll}>
            Clear filters
          </button>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={NO_RUNS}>
      <p>Runs appear here with their duration and start delay. Select Trigger to start a run now.</p>
    </Empty>
  );
}

function Filters({ search, change }: Pick<ViewProps, "search" | "change">) {
  return (
    <div className="row run-filters">
      <SelectField
        label="State"
        value={search.state ?? ""}
        onChange={(event) => change({ state: (event.target.value || null) as never })}
        choices={[["", "Any state"], ...STATES.map((state) => [state, RUN_LOOKS[state].word] as const)]}
      />
      <SelectField
        label="Origin"
        value={search.origin ?? ""}
        onChange={(event) => change({ origin: (event.target.value || null) as never })}
        choices={[["", "Any origin"], ...ORIGINS.map((origin) => [origin, ORIGIN_TEXTS[origin]] as const)]}
      />
    </div>
  );
}

function Charts({ runs, zone }: { runs: readonly RunSummary[]; zone: string }) {
  const bars = useMemo(() => barsOf(runs.slice(0, MOST_BARS), serverNow()), [runs]);
  const hasLate = bars.some((bar) => bar.lateSeconds !== null);
  return (
    <Card title="Duration">
      <RunChart bars={bars} zone={zone} label="Run durations over time; the table below has the same data" />
      {hasLate ? (
        <>
          <h3>Start delay</h3>
          <Suspense fallback={<Loading />}>
            <Lateness bars={bars} zone={zone} />
          </Suspense>
        </>
      ) : null}
    </Card>
  );
}

function RunTable({ runs, schedule }: { runs: readonly RunSummary[]; schedule: WholeSchedule }) {
  return (
    <Table
      aria-label="Runs, newest first"
      heads={[
        "Scheduled for",
        "State",
        "Origin",
        { text: "Duration", number: true },
        { text: "Delay", number: true },
        { text: "Attempt", number: true },
      ]}
    >
      {runs.map((run, index) => (
        <RunRow key={run.run_id || `${run.sequence ?? ""} ${index}`} run={run} schedule={schedule} />
      ))}
    </Table>
  );
}

function RunRow({ run, schedule }: { run: RunSummary; schedule: WholeSchedule }) {
  const at = run.nominal ?? run.created_at;
  const when = <When at={at} zone={schedule.spec.timezone} />;
  const late = latenessOf(run);
  const isMissed = !run.run_id && (run.reason === "missed" || run.reason === "catchup_cap");
  const many = run.covers && run.covers.count > 1 ? ` × ${run.covers.count}` : "";
  return (
    <tr data-row>
      <td>
        {run.run_id ? (
          <Link to="/runs/$runId" params={{ runId: run.run_id }} className="quiet-link">
            {when}
          </Link>
        ) : (
          <WhyLink scheduleId={schedule.schedule_id} at={at}>
            {when}
          </WhyLink>
        )}
      </td>
      <td>
        <Badge
          look={isMissed ? MISSED : RUN_LOOKS[run.state]}
          text={many ? `${(isMissed ? MISSED : RUN_LOOKS[run.state]).word}${many}` : undefined}
        />
        {run.reason || run.error ? (
          <div className="muted small run-why" dir="auto">
            {[reasonText(run.reason), run.error].filter(Boolean).join(": ")}
          </div>
        ) : null}
      </td>
      <td className="nowrap">{ORIGIN_TEXTS[run.origin]}</td>
      <td className="number nowrap">{run.duration_seconds === null ? "—" : durationText(run.duration_seconds)}</td>
      <td className="number nowrap">{late === null ? "—" : late < 1 ? "On time" : durationText(late)}</td>
      <td className="number">{run.attempt || "—"}</td>
    </tr>
  );
}
