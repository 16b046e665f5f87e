// How a schedule does, in a sentence, and what one asks of it first: when next, where, whose.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { HEALTH_LOOKS, reasonText, STATUS_LOOKS } from "../../marks/outcomes";
import { Timed } from "../../parts/Explain";
import { Facts } from "../../parts/Page";
import { SourceBadge } from "../../parts/SourceBadge";
import { When } from "../../parts/When";
import { actionWords } from "./policyWords";
import type { WholeSchedule } from "./whole";

type Schedule = WholeSchedule;

export function Head({ schedule }: { schedule: Schedule }) {
  return (
    <section className="card schedule-head" aria-label="How it does">
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
          Its history stays readable.
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

/** Since when and why is in the sentence above. */
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
        "until somebody resumes it"
      )}
    </>
  );
}

function timesOf(schedule: Schedule): Fact[] {
  const zone = schedule.spec.timezone;
  const skipsFirst = schedule.next_fire_at !== null && schedule.next_fire_at !== schedule.next_run_at;
  return [
    ...(schedule.status === "paused" ? [["Paused", <PausedBy key="paused" schedule={schedule} />] as const] : []),
    [
      "Next run",
      schedule.next_run_at ? (
        <When key="next" at={schedule.next_run_at} zone={zone} />
      ) : (
        <span key="none">none in sight: {reasonText(schedule.next_run_reason) ?? "it has no time to come"}</span>
      ),
    ],
    ...(skipsFirst && schedule.status === "active"
      ? [["Next time", <SkippedNext key="skip" schedule={schedule} />] as const]
      : []),
    ["Last run", <LastRun key="last" schedule={schedule} />],
    ["Zone", <ZoneText key="zone" schedule={schedule} />],
    [
      "Does",
      <span key="does" dir="auto">
        {actionWords(schedule.action)}
      </span>,
    ],
  ];
}

/** The next occurrence of the spec is not the next run: something stands against it. */
function SkippedNext({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <When at={schedule.next_fire_at} zone={schedule.spec.timezone} />{" "}
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: schedule.schedule_id }}
        search={((before: Record<string, unknown>) => ({ ...before, at: schedule.next_fire_at })) as never}
        resetScroll={false}
      >
        will be skipped: why?
      </Link>
    </>
  );
}

function LastRun({ schedule }: { schedule: Schedule }) {
  if (!schedule.last_run_at) return <span className="muted">never</span>;
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
      {jitter > 0 ? <span className="muted"> · up to {jitter} s of jitter</span> : null}
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
            of the bundle <bdi>{schedule.bundle}</bdi>
          </span>
        ) : null}
      </span>,
    ],
    [
      "Labels",
      labels.length === 0 ? (
        <span key="none" className="muted">
          none
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
    ["So far", countsOf(schedule)],
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
    ...(schedule.active_runs > 0 ? [many(schedule.active_runs, "busy now")] : []),
    ...(schedule.held_runs > 0 ? [many(schedule.held_runs, "held")] : []),
    ...(schedule.remaining_actions !== null ? [many(schedule.remaining_actions, "left")] : []),
  ].join(" · ");
}
