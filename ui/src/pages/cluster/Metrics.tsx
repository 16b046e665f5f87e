// A few of the service's counts as numbers, with a way to all of them.
import { useMemo } from "react";
import { addressOf } from "../../api/client";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Card, Facts } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { durationText } from "../../time/zones";
import { boundOf, byLabel, parsed, total, type Sample } from "./exposition";
import { useMetrics } from "./reading";

export function Metrics() {
  const metrics = useMetrics(true);
  return (
    <Card
      title="Metrics"
      actions={
        <a href={addressOf("/metrics")} target="_blank" rel="noreferrer">
          All of them, for Prometheus
        </a>
      }
    >
      <Shown of={metrics}>{(text) => <Numbers text={text} />}</Shown>
    </Card>
  );
}

function Numbers({ text }: { text: string }) {
  const samples = useMemo(() => parsed(text), [text]);
  return (
    <div className="stack">
      <p className="muted">Counted by the process that answers, since it started.</p>
      <div className="columns">
        <Facts
          of={[
            ["Steps of the ticker", whole(total(samples, "horarium_ticks_total"))],
            ["Runs born", listed(byLabel(samples, "horarium_runs_emitted_total", "origin"))],
            [
              "Runs ended",
              listed(
                byLabel(samples, "horarium_run_ends_total", "state").map(([state, many]) => [wordOf(state), many]),
              ),
            ],
            ["Skipped", listed(byLabel(samples, "horarium_runs_skipped_total", "reason"))],
            ["Missed", whole(total(samples, "horarium_runs_missed_total"))],
          ]}
        />
        <Facts
          of={[
            ["Decided after due", delays(samples, "horarium_drift_seconds")],
            ["Started after due", delays(samples, "horarium_start_delay_seconds")],
            ["Fires too early", whole(total(samples, "horarium_fires_early_total"))],
            ["Launches that failed", whole(total(samples, "horarium_runs_failed_launch_total"))],
            ["Leases that expired", whole(total(samples, "horarium_lease_expiries_total"))],
            [
              "Runs not over yet",
              listed(byLabel(samples, "horarium_queue_depth", "state").map(([state, many]) => [wordOf(state), many])),
            ],
          ]}
        />
      </div>
    </div>
  );
}

function wordOf(state: string): string {
  return state in RUN_LOOKS ? RUN_LOOKS[state as keyof typeof RUN_LOOKS].word : state;
}

function whole(value: number | null): string {
  return value === null ? "not counted" : Math.round(value).toLocaleString("en");
}

const MOST_LISTED = 8;

function listed(parts: readonly (readonly [string, number])[]): string {
  if (parts.length === 0) return "none";
  const texts = parts.slice(0, MOST_LISTED).map(([name, many]) => `${whole(many)} ${name.replaceAll("_", " ")}`);
  return texts.join(" · ") + (parts.length > MOST_LISTED ? " · …" : "");
}

/** "half within 5 ms, 99 % within 100 ms". */
function delays(samples: readonly Sample[], name: string): string {
  const [half, most] = [boundOf(samples, name, 0.5), boundOf(samples, name, 0.99)];
  if (half === null || most === null) return "nothing measured yet";
  return `half within ${boundText(half)}, 99 % within ${boundText(most)}`;
}

function boundText(seconds: number): string {
  return Number.isFinite(seconds) ? durationText(seconds) : "more than is told apart";
}
