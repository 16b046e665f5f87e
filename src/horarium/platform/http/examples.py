"""Example responses for the description of the API, as values of the response types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from horarium.core.decision.statuses import Certainty, Forecast, HealthStatus, LastStatus, NoRun
from horarium.core.document.calendar import CalendarKind
from horarium.core.document.states import EventType, Reason, RunState, Source, Status
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.features.bundles.document import BundleKind
from horarium.features.bundles.model import Applied, BundleChange, Change, FieldChange
from horarium.features.schedules.model import (
    Backfilled,
    Explanation,
    Filled,
    HistoryEvent,
    PreviewRow,
    Schedule,
    ScheduleHealth,
    Triggered,
    WriteResult,
)
from horarium.features.tenants.model import Calendar, Check, FeedEntry, Health, IssuedToken, LoopLife, Namespace, Token
from horarium.features.webhooks.model import DeadLetter, Subscription
from horarium.platform import wire as platform_wire
from horarium.platform.wire import Role

AT = datetime(2026, 3, 1, 23, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 23, tzinfo=UTC)
RUN_ID = "01KJF0Z7C8E2V9Q4M6T1N3B5XA"
UID = "01KJF0Z7C8E2V9Q4M6T1N3B5XB"

SCHEDULE: Final[Mapping[str, Any]] = {
    "schedule_id": "nightly-report",
    "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"},
    "action": {"workflow_type": "report", "task_queue": "reports", "input": [{"kind": "daily"}]},
    "overlap_policy": "skip",
    "note": "every night at two",
}
CALENDAR: Final[Mapping[str, Any]] = {
    "name": "company-holidays",
    "kind": "skip_dates",
    "timezone": "Europe/Istanbul",
    "dates": ["2026-12-24", "2026-12-31"],
}
BUNDLE: Final[Mapping[str, Any]] = {
    "bundle": "billing",
    "calendars": [{**CALENDAR, "name": "billing-holidays"}],
    "schedules": [{**SCHEDULE, "schedule_id": "billing-report"}],
    "dry_run": True,
}
APPLIED = Applied(
    dry_run=True,
    bundle="billing",
    changes=(
        BundleChange(
            change=Change.UPDATE,
            kind=BundleKind.SCHEDULE,
            name="billing-report",
            diff=(FieldChange(path="spec.cron_expressions", old=["0 1 * * *"], new=["0 2 * * *"]),),
            fires_added=7,
            fires_removed=7,
        ),
    ),
)
UPSERT: Final[Mapping[str, Any]] = {
    "schedule_id": "nightly-report",
    "workflow_id": "report",
    "version": 3,
    "cron_expr": "0 2 * * *",
    "timezone": "Europe/Istanbul",
}
START: Final[Mapping[str, Any]] = {
    "workflow_id": "report",
    "version": 3,
    "scheduled_for": "2026-03-01T23:00:00Z",
    "idempotency_key": "report-2026-03-01",
}

DESCRIBED = Schedule(
    schedule_id="nightly-report",
    namespace="default",
    spec=SCHEDULE["spec"],
    action={**SCHEDULE["action"], "kind": "workflow", "queue": "reports"},
    overlap_policy=OverlapPolicy.SKIP,
    catchup_policy=CatchupPolicy.FIRE_ONCE,
    source=Source.RUNTIME,
    jitter_seconds=0,
    max_runs=None,
    note="every night at two",
    owner="ada",
    labels={},
    memo={},
    search_attributes={},
    status=Status.ACTIVE,
    paused=False,
    workflow_type="report",
    remaining_actions=None,
    fires_count=12,
    failures_count=1,
    consecutive_failures=0,
    skipped_trigger_count=0,
    active_runs=0,
    held_runs=0,
    rotation_index=0,
    next_fire_at=AT,
    next_fire=AT,
    next_run_at=AT,
    next_run_reason=None,
    last_fired_at=None,
    last_fire=None,
    last_run_at=None,
    last_run_id=None,
    last_completed_at=None,
    last_dispatch_status=None,
    last_status=LastStatus.NOTHING,
    consecutive_empty_runs=0,
    last_skip_reason=None,
    last_skipped_at=None,
    last_error_at=None,
    last_error_message=None,
    paused_at=None,
    pause_reason=None,
    paused_until=None,
    paused_by=None,
    bundle=None,
    created_at=AT,
    updated_at=AT,
    deleted_at=None,
    version=1,
    revision=1,
    generation=1,
    uid=UID,
    words="at 02:00 every day (Europe/Istanbul time)",
)


_STATUS_AFTER = {
    platform_wire.WriteOutcome.DELETED: Status.DELETED,
    platform_wire.WriteOutcome.PAUSED: Status.PAUSED,
}


def write_result(outcome: platform_wire.WriteOutcome, version: int = 2) -> WriteResult:
    status = _STATUS_AFTER.get(outcome, Status.ACTIVE)
    runs = status is Status.ACTIVE
    return WriteResult(
        schedule_id="nightly-report",
        outcome=outcome,
        namespace="default",
        status=status,
        next_fire_at=None if status is Status.DELETED else AT,
        next_run_at=AT if runs else None,
        next_run_reason=None if runs else NoRun.STATUS_NOT_TRIGGERABLE,
        version=version,
    )


CREATED = write_result(platform_wire.WriteOutcome.CREATED, version=1)
UPDATED = write_result(platform_wire.WriteOutcome.UPDATED)
PAUSED = write_result(platform_wire.WriteOutcome.PAUSED)
RESUMED = write_result(platform_wire.WriteOutcome.RESUMED)
DELETED = write_result(platform_wire.WriteOutcome.DELETED)
TRIGGERED = Triggered(
    schedule_id="nightly-report",
    namespace="default",
    outcome=platform_wire.TriggerOutcome.TRIGGERED,
    workflow_id=f"schedule:nightly-report:manual:{RUN_ID}",
    run_id=RUN_ID,
    state=RunState.READY,
)
BACKFILLED = Backfilled(
    schedule_id="nightly-report",
    namespace="default",
    outcome=platform_wire.BackfillOutcome.STARTED,
    fires_attempted=1,
    fires_started=1,
    dry_run=False,
    stopped=False,
    results=(Filled(fire_time=AT, outcome=platform_wire.FillOutcome.STARTED, run_id=RUN_ID),),
)
EVENT = HistoryEvent(
    id=f"{UID}:4",
    sequence=4,
    namespace="default",
    event_type=EventType.TRIGGERED,
    recorded_at=AT,
    workflow_instance_id="schedule:nightly-report:1772406000",
    workflow_run_id=RUN_ID,
    payload={"occurrence_time": "2026-03-01T23:00:00Z", "workflow_run_id": RUN_ID},
)
PREVIEW = PreviewRow(
    tick_at=AT,
    decision=Forecast.SKIP,
    reason=Reason.CALENDAR,
    inputs=None,
    due=AT,
    detail=None,
    rotation_index=None,
    certainty=Certainty.CERTAIN,
    sentence="The occurrence will be skipped: a calendar excludes the day.",
)
EXPLANATION = Explanation(
    schedule_id="nightly-report",
    at=AT,
    as_of=AT,
    sentence="The occurrence at 2026-03-01T23:00:00Z will run.",
    on_spec=True,
    outcome=platform_wire.ExplainedOutcome.FIRES,
    fires=True,
    reason=None,
    source=platform_wire.ExplainedSource.PREDICTION,
    due=AT,
    findings=(),
    recorded=None,
    previous=None,
    following=LATER,
)
HEALTH = ScheduleHealth(
    workspace_id=None,
    workspace_name=None,
    schedule_id="nightly-report",
    schedule_name="nightly-report",
    namespace="default",
    cron_expr="0 2 * * *",
    last_run_at=AT,
    expected_next_run=LATER,
    status=HealthStatus.OK,
    sentence="Its last run ended at 2026-03-01T23:00:04Z; its next occurrence is 2026-03-02T23:00:00Z.",
    failures_in_a_row=0,
    last_status=LastStatus.SUCCESS,
    consecutive_empty_runs=0,
    late_seconds=0.0,
    stale_threshold_seconds=172_800.0,
    error=None,
    warnings=(),
)
STORED_CALENDAR = Calendar(
    name="company-holidays",
    kind=CalendarKind.SKIP_DATES,
    timezone="Europe/Istanbul",
    dates=("2026-12-24", "2026-12-31"),
    rule=None,
    covers=None,
    read_only=False,
    version=1,
    updated_at=AT,
    warning=None,
)
ENTRY = FeedEntry(
    id="714-20",
    kind="schedule_skipped",
    at=AT,
    namespace="default",
    schedule_id="nightly-report",
    run_id=None,
    reason="calendar",
    occurrence_time=AT,
    event_type=EventType.TRIGGER_SKIPPED,
    sequence=4,
    payload={"reason": "calendar"},
)
SUBSCRIBED: dict[str, Any] = {
    "name": "failures",
    "kinds": ["run_finished", "schedule_health"],
    "filter": {"labels": {"team": "billing"}, "states": ["failed", "timed_out"]},
    "url": "https://ops.example.com/hooks/horarium",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}
SUBSCRIPTION = Subscription(
    subscription_id=UID,
    name="failures",
    namespace="default",
    kinds=("run_finished", "schedule_health"),
    filter=SUBSCRIBED["filter"],
    url=SUBSCRIBED["url"],
    version=1,
    created_at=AT,
    updated_at=AT,
    cursor="714-20",
    failures=0,
    retry_at=None,
    delivered_count=12,
    last_delivered_at=AT,
    last_error=None,
    last_error_at=None,
    dead_letters=0,
)
DEAD_LETTER = DeadLetter(
    dead_letter_id=UID,
    entry="714-20",
    kind="run_finished",
    attempts=7,
    status=500,
    error="HTTP 500: out of order",
    failed_at=AT,
    redeliver_at=None,
    body={"specversion": "1.0", "id": "714-20", "type": "dev.horarium.feed.run_finished.v1", "data": {}},
)
_TOKEN: dict[str, Any] = {
    "token_id": UID,
    "namespace": "default",
    "name": "ci",
    "role": Role.OPERATOR,
    "subject": None,
    "created_at": AT,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": None,
}
TOKEN = Token(**_TOKEN)
ISSUED = IssuedToken(**_TOKEN, secret="hor_…")
NAMESPACE = Namespace(namespace="tenant", description="a tenant", created_at=AT)
PROBE = Health(
    status="ok",
    ready=True,
    version="0.1.0",
    tzdata="2026.1",
    checks=(Check(name="ticking", passed=True, detail="0.4 s ago", remedy=None),),
)
LOOP = LoopLife(last_tick_at=AT, seconds_ago=0.4, limit_seconds=30.0, healthy=True)
