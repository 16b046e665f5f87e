"""Answers of the trigger paths of the plain cron scheduler."""

from __future__ import annotations

from horarium.core.document.states import PublicStatus, Status
from horarium.platform.wire import Answer, Time, WriteOutcome


class TriggerUpserted(Answer, frozen=True, kw_only=True):
    schedule_id: str
    next_run_at: Time | None
    outcome: WriteOutcome
    warnings: tuple[str, ...]
    exhausted: bool = False


class TriggerPaused(Answer, frozen=True, kw_only=True):
    schedule_id: str
    paused: bool
    next_run_at: Time | None
    outcome: WriteOutcome
    paused_until: Time | None = None


class TriggerDeleted(Answer, frozen=True, kw_only=True):
    schedule_id: str
    outcome: WriteOutcome


class Trigger(Answer, frozen=True, kw_only=True):
    """A schedule as a trigger, with its next five fire times."""

    schedule_id: str
    workflow_id: str | None
    version: int | str | None
    user_id: str | None
    cron_expr: str | None
    timezone: str
    start_at: Time | None
    end_at: Time | None
    next_run_at: Time | None
    paused: bool
    status: Status
    jitter_ms: int
    overlap_policy: str
    catchup_policy: str
    updated_at: Time
    preview: tuple[Time, ...]


class TriggerRun(Answer, frozen=True, kw_only=True):
    """A run, or an occurrence without a run, which has a `reason`. `count`: number of occurrences it covers."""

    idempotency_key: str | None
    schedule_id: str | None
    run_at: Time | None
    status: PublicStatus
    run_id: str | None
    reason: str | None
    count: int
    created_at: Time
    updated_at: Time


class TriggerRuns(Answer, frozen=True, kw_only=True):
    schedule_id: str
    runs: tuple[TriggerRun, ...]
