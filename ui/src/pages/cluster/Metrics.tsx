// Selected metrics of the service, with a link to all metrics.
import { useMemo } from "react";
import { addressOf } from "../../api/client";
import { Card, Facts } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { durationText } from "../../time/zones";
import { boundOf, byLabel, parsed, total, type Sample } from "./exposition";
import { useMetrics } from "./reading";
import { inSentence, NONE, ORIGINS, reasonText, RUN_STATES } from "../../words";

export function Metrics() {
  const metrics = useMetrics(true);
  return (
    <Card
      title="Metrics"
      actions={
        <a href={addressOf("/metrics")} target="_blank" rel="noreferrer">
          All metrics (Prometheus)
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
      <p className="muted">Counted by the responding process since its start.</p>
      <div className="columns">
        <Facts
          of={[
            ["Ticks", whole(total(samples, "horarium_ticks_total"))],
            [
              "Runs created",
              listed(byLabel(samples, "horarium_runs_emitted_total", "origin"), (origin) => labelOf(ORIGINS, origin)),
            ],
            [
              "Runs ended",
              listed(byLabel(samples, "horarium_run_ends_total", "state"), (state) => labelOf(RUN_STATES, state)),
            ],
            [
              "Skipped",
              listed(
                byLabel(samples, "horarium_runs_skipped_total", "reason"),
                (reason) => reasonText(reason) ?? reason,
              ),
            ],
            ["Missed", whole(total(samples, "horarium_runs_missed_total"))],
          ]}
        />
        <Facts
          of={[
            ["Scheduling delay", delays(samples, "horarium_drift_seconds")],
            ["Start delay", delays(samples, "horarium_start_delay_seconds")],
            ["Early fires", whole(total(samples, "horarium_fires_early_total"))],
            ["Failed dispatches", whole(total(samples, "horarium_runs_failed_launch_total"))],
            ["Expired leases", whole(total(samples, "horarium_lease_expiries_total"))],
            [
              "Open runs",
              listed(byLabel(samples, "horarium_queue_depth", "state"), (state) => labelOf(RUN_STATES, state)),
            ],
          ]}
        />
      </div>
    </div>
  );
}

function labelOf(labels: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(labels, name) ? labels[name]! : name;
}

const NO_DATA = "No data";

function whole(value: number | null): string {
  return value === null ? NO_DATA : Math.round(value).toLocaleString("en");
}

const MOST_LISTED = 8;

function listed(parts: readonly (readonly [string, number])[], labelled: (name: string) => string): string {
  if (parts.length === 0) return NONE;
  const texts = parts.slice(0, MOST_LISTED).map(([name, many]) => `${whole(many)} ${inSentence(labelled(name))}`);
  return texts.join(" · ") + (parts.length > MOST_LISTED ? " · …" : "");
}

/** "p50 ≤ 5 ms, p99 ≤ 100 ms". */
function delays(samples: readonly Sample[], name: string): string {
  const [half, most] = [boundOf(samples, name, 0.5), boundOf(samples, name, 0.99)];
  if (half === null || most === null) return NO_DATA;
  return `p50 ${boundText(half)}, p99 ${boundText(most)}`;
}

function boundText(seconds: number): string {
  return Number.isFinite(seconds) ? `≤ ${durationText(seconds)}` : "above the last bucket";
}
