"""What is answered about many schedules or runs at once: one outcome each."""

from __future__ import annotations

from enum import StrEnum

from horarium.schedule.position import Status
from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Time

MAX_AT_ONCE = 100
"""Schedules or runs of one request: each is a transaction of its own, and somebody waits for the answer."""


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
    """The words of the single actions, and two of its own."""

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
    """What became of one schedule; `reason` and `message` say why nothing did."""

    schedule_id: str
    outcome: BulkOutcome
    status: Status | None
    run_id: str | None = None
    state: RunState | None = None
    reason: str | None = None
    message: str | None = None


class BulkChanges(Answer, frozen=True, kw_only=True):
    """`next_page_token` goes on with those that fit the same filter and are not in this answer.

    `until` is when the pauses end by themselves. Whoever goes on with the next page says it in place of a length of
    time, lest they end one after the other.
    """

    namespace: str
    action: BulkAction
    dry_run: bool
    outcomes: tuple[BulkChange, ...]
    next_page_token: str | None
    until: Time | None = None


class BulkStop(Answer, frozen=True, kw_only=True):
    """What became of one run."""

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
