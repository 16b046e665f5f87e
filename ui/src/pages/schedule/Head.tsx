// Summary of a schedule: health, next and last run, time zone, owner and totals.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { HEALTH_LOOKS, reasonText, STATUS_LOOKS } from "../../marks/outcomes";
import { Timed } from "../../parts/Explain";
import { Facts } from "../../parts/Page";
import { SourceBadge } from "../../parts/SourceBadge";
import { When } from "../../parts/When";
import { FORECASTS, inSentence, NONE } from "../../words";
import { actionWords } from "./policyWords";
import type { WholeSchedule } from "./whole";

type Schedule = WholeSchedule;

export function Head({ schedule }: { schedule: Schedule }) {
  return (
    <section className="card schedule-head" aria-label="Summary">
      <Health schedule={schedule} />
      {schedule.broken ? (
        <div className="note tone-bad" role="alert">
          {schedule.broken}
        </div>
      ) : null}
      <div className="columns">
        <Facts of={timesOf(schedule)} />
        <Facts of={belongingsOf(schedule)} />
      </div>
    </section>
  );
}

function Health({ schedule }: { schedule: Schedule }) {
  const found = useRead(
    "/api/schedules/{schedule_id}/health",
    { path: { schedule_id: schedule.schedule_id } },
    { enabled: schedule.status !== "deleted" },
  );
  if (schedule.status === "deleted") {
    return (
      <div className="row schedule-health">
        <Badge look={STATUS_LOOKS.deleted} />
        <span className="schedule-sentence">
          {schedule.deleted_at ? (
            <>
              Deleted <When at={schedule.deleted_at} zone={schedule.spec.timezone} />.{" "}
            </>
          ) : null}
          History is available until the retention period ends.
        </span>
      </div>
    );
  }
  const zone = schedule.spec.timezone;
  const health = found.data;
  const saysMore =
    health !== undefined &&
    health.status !== schedule.status &&
    (health.status !== "ok" || schedule.status === "active");
  return (
    <div className="row schedule-health" aria-live="polite">
      <Badge look={STATUS_LOOKS[schedule.status]} />
      {saysMore ? <Badge look={HEALTH_LOOKS[health.status]} /> : null}
      {schedule.consecutive_failures > 0 && health?.status !== "failing" ? (
        <Badge look={HEALTH_LOOKS.failing} text="Last run failed" />
      ) : null}
      {health ? (
        <span className="schedule-sentence" dir="auto">
          <Timed text={health.sentence} zone={zone} />
        </span>
      ) : null}
      {health?.warnings?.map((text) => (
        <div className="note tone-warn" dir="auto" key={text}>
          {text}
        </div>
      ))}
      {found.error ? <span className="muted">{found.error.message}</span> : null}
    </div>
  );
}

type Fact = readonly [name: string, value: ReactNode];

/** The health sentence has the time and reason of the pause. */
function PausedBy({ schedule }: { schedule: Schedule }) {
  return (
    <>
      {schedule.paused_by ? (
        <>
          by <bdi>{schedule.paused_by}</bdi>,{" "}
        </>
      ) : null}
      {schedule.paused_until ? (
        <>
          until <When at={schedule.paused_until} zone={schedule.spec.timezone} />
        </>
      ) : (
        "until resumed"
      )}
    </>
  );
}

function timesOf(schedule: Schedule): Fact[] {
  const zone = schedule.spec.timezone;
  const whyNone = reasonText(schedule.next_run_reason);
  const skipsFirst = schedule.next_fire_at !== null && schedule.next_fire_at !== schedule.next_run_at;
  return [
    ...(schedule.status === "paused" ? [["Paused", <PausedBy key="paused" schedule={schedule} />] as const] : []),
    [
      "Next run",
      schedule.next_run_at ? (
        <When key="next" at={schedule.next_run_at} zone={zone} />
      ) : (
        <span key="none">{whyNone === null ? NONE : `${NONE}: ${inSentence(whyNone)}`}</span>
      ),
    ],
    ...(skipsFirst && schedule.status === "active"
      ? [["Next occurrence", <SkippedNext key="skip" schedule={schedule} />] as const]
      : []),
    ["Last run", <LastRun key="last" schedule={schedule} />],
    ["Time zone", <ZoneText key="zone" schedule={schedule} />],
    [
      "Action",
      <span key="action" dir="auto">
        {actionWords(schedule.action)}
      </span>,
    ],
  ];
}

/** The next occurrence will be skipped, so the next run is a later one. */
function SkippedNext({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <When at={schedule.next_fire_at} zone={schedule.spec.timezone} /> · {FORECASTS.skip} ·{" "}
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: schedule.schedule_id }}
        search={((before: Record<string, unknown>) => ({ ...before, at: schedule.next_fire_at })) as never}
        resetScroll={false}
      >
        Explain
      </Link>
    </>
  );
}

function LastRun({ schedule }: { schedule: Schedule }) {
  if (!schedule.last_run_at) return <span className="muted">Never</span>;
  const when = <When at={schedule.last_run_at} zone={schedule.spec.timezone} />;
  if (!schedule.last_run_id) return when;
  return (
    <Link to="/runs/$runId" params={{ runId: schedule.last_run_id }} className="quiet-link">
      {when}
    </Link>
  );
}

function ZoneText({ schedule }: { schedule: Schedule }) {
  const jitter = schedule.jitter_seconds;
  return (
    <>
      {schedule.spec.timezone}
      {jitter > 0 ? <span className="muted"> · jitter up to {jitter} s</span> : null}
    </>
  );
}

function belongingsOf(schedule: Schedule): Fact[] {
  const labels = Object.entries(schedule.labels);
  return [
    [
      "Owner",
      schedule.owner ? (
        <bdi key="owner">{schedule.owner}</bdi>
      ) : (
        <span key="none" className="muted">
          —
        </span>
      ),
    ],
    [
      "Source",
      <span key="source" className="row tight">
        <SourceBadge source={schedule.source} />
        {schedule.bundle ? (
          <span>
            Bundle <bdi>{schedule.bundle}</bdi>
          </span>
        ) : null}
      </span>,
    ],
    [
      "Labels",
      labels.length === 0 ? (
        <span key="none" className="muted">
          {NONE}
        </span>
      ) : (
        <span key="labels" className="row tight">
          {labels.map(([name, value]) => (
            <span key={name} className="badge label-badge" dir="auto" title={`${name}=${value}`}>
              {name}={value}
            </span>
          ))}
        </span>
      ),
    ],
    ["Totals", countsOf(schedule)],
    ...(schedule.note
      ? [
          [
            "Note",
            <span key="note" dir="auto">
              {schedule.note}
            </span>,
          ] as const,
        ]
      : []),
  ];
}

function countsOf(schedule: Schedule): string {
  const many = (count: number, text: string): string => `${count.toLocaleString("en-GB")} ${text}`;
  return [
    many(schedule.fires_count, "fired"),
    many(schedule.failures_count, "failed"),
    many(schedule.skipped_trigger_count, "skipped"),
    ...(schedule.active_runs > 0 ? [many(schedule.active_runs, "active")] : []),
    ...(schedule.held_runs > 0 ? [many(schedule.held_runs, "buffered")] : []),
    ...(schedule.remaining_actions !== null ? [many(schedule.remaining_actions, "runs left")] : []),
  ].join(" · ");
}
