"""Answers about bulk changes: one outcome per schedule or run."""

from __future__ import annotations

from enum import StrEnum

from horarium.schedule.position import Status
from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Time

MAX_AT_ONCE = 100
"""Maximum schedules or runs of one request. Each is a separate transaction while the client waits."""


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    LABEL = "label"
    DELETE = "delete"


class StopAction(StrEnum):
    CANCEL = "cancel"
    TERMINATE = "terminate"


class BulkOutcome(StrEnum):
    """Outcome of a bulk change of one schedule."""

    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    TRIGGERED = "triggered"
    BUFFERED = "buffered"
    BUFFER_FULL = "buffer_full"
    SKIPPED = "skipped"
    UNCHANGED = "unchanged"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    REQUESTED = "cancel_requested"
    PLANNED = "planned"  # a dry run
    FAILED = "failed"  # this one could not be done; the others were


class BulkChange(Answer, frozen=True, kw_only=True):
    """Outcome for one schedule. `reason` and `message` are set if nothing changed."""

    schedule_id: str
    outcome: BulkOutcome
    status: Status | None
    run_id: str | None = None
    state: RunState | None = None
    reason: str | None = None
    message: str | None = None


class BulkChanges(Answer, frozen=True, kw_only=True):
    """Outcomes of a bulk change. `next_page_token` continues with the schedules that match the same filter.

    `until`: time at which the pauses end. Send it with the next page instead of a duration, so that all pauses end at
    the same time.
    """

    namespace: str
    action: BulkAction
    dry_run: bool
    outcomes: tuple[BulkChange, ...]
    next_page_token: str | None
    until: Time | None = None


class BulkStop(Answer, frozen=True, kw_only=True):
    """Outcome for one run."""

    run_id: str
    schedule_id: str | None
    outcome: BulkOutcome
    state: RunState | None
    reason: str | None = None
    message: str | None = None


class BulkStops(Answer, frozen=True, kw_only=True):
    namespace: str
    action: StopAction
    dry_run: bool
    outcomes: tuple[BulkStop, ...]
    next_page_token: str | None
