"""What is asked for about many schedules or runs at once: which ones, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from horarium.schedule.position import Status
from horarium.wire.bodies import Body, Moment, Name, Note, Whole, ZoneName
from horarium.wire.bulk import MAX_AT_ONCE, BulkAction, StopAction

Ids = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_AT_ONCE)]
Labels = Annotated[Mapping[str, str], Meta(max_length=20)]
NewLabels = Annotated[Mapping[str, str | None], Meta(min_length=1, max_length=20)]
Part = Annotated[str, Meta(min_length=1, max_length=200)]
PageToken = Annotated[str, Meta(max_length=8_192)]


class ScheduleChoice(Body, frozen=True, kw_only=True):
    """All that is given must fit; `name_contains` is part of an id or a name."""

    OTHER_NAMES: ClassVar = {"schedule_ids": "ids", "text": "name_contains"}

    ids: Ids | None = None
    labels: Labels | None = None
    name_contains: Part | None = None
    status: Status | None = None


class BulkBody(Body, frozen=True, kw_only=True):
    """An empty filter is a mistake more often than a wish: whoever means all of them says `all`.

    `labels` are for the action `label`: they are put on, and null takes one off. A local time in `until` needs a
    `timezone`: schedules may have different ones.
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}

    action: BulkAction
    filter: ScheduleChoice | None = None
    all: bool = False
    labels: NewLabels | None = None
    until: Moment | None = None
    timezone: ZoneName | None = None
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
