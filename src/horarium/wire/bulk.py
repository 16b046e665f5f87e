"""What is asked for, and answered, about many schedules or runs at once: which ones, what to do, one outcome each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from horarium.schedule.position import Status
from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Time
from horarium.wire.bodies import Body, Name, Note, Whole

MAX_AT_ONCE = 100
"""Schedules or runs of one request: each is a transaction of its own, and somebody waits for the answer."""

Ids = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_AT_ONCE)]
Labels = Annotated[Mapping[str, str], Meta(max_length=20)]
Part = Annotated[str, Meta(min_length=1, max_length=200)]
PageToken = Annotated[str, Meta(max_length=8_192)]


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    DELETE = "delete"


class StopAction(StrEnum):
    CANCEL = "cancel"
    TERMINATE = "terminate"


class BulkOutcome(StrEnum):
    """The words of the single actions, and two of its own."""

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


class ScheduleChoice(Body, frozen=True, kw_only=True):
    """All that is given must fit; `name_contains` is part of an id or a name."""

    OTHER_NAMES: ClassVar = {"schedule_ids": "ids", "text": "name_contains"}

    ids: Ids | None = None
    labels: Labels | None = None
    name_contains: Part | None = None
    status: Status | None = None


class BulkBody(Body, frozen=True, kw_only=True):
    """An empty filter is a mistake more often than a wish: whoever means all of them says `all`."""

    OTHER_NAMES: ClassVar = {"note": "reason"}

    action: BulkAction
    filter: ScheduleChoice | None = None
    all: bool = False
    until: Time | None = None
    reason: Note | None = None
    dry_run: bool = False
    limit: Whole = MAX_AT_ONCE
    next_page_token: PageToken | None = None
    namespace: Name | None = None


class RunChoice(Body, frozen=True, kw_only=True):
    """Of the runs that have not ended; `labels` are those of their schedules."""

    OTHER_NAMES: ClassVar = {"run_ids": "ids", "state": "states"}

    ids: Ids | None = None
    schedule_ids: Ids | None = None
    labels: Labels | None = None
    states: Ids | None = None


class BulkRunsBody(Body, frozen=True, kw_only=True):
    action: StopAction
    filter: RunChoice | None = None
    all: bool = False
    dry_run: bool = False
    limit: Whole = MAX_AT_ONCE
    next_page_token: PageToken | None = None
    namespace: Name | None = None


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
    """`next_page_token` goes on with those that fit the same filter and are not in this answer."""

    namespace: str
    action: BulkAction
    dry_run: bool
    outcomes: tuple[BulkChange, ...]
    next_page_token: str | None


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
