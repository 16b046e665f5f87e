"""Bodies of bulk changes: a filter and an action."""

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
    """Filter of schedules. All given conditions must match. `name_contains` matches a part of the ID or name."""

    OTHER_NAMES: ClassVar = {"schedule_ids": "ids", "text": "name_contains"}

    ids: Ids | None = None
    labels: Labels | None = None
    name_contains: Part | None = None
    status: Status | None = None


class BulkBody(Body, frozen=True, kw_only=True):
    """A bulk change. An empty filter requires `all`. With the action `label`, `labels` are added; null removes a label.
    A local time in `until` requires a `timezone`.
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
    """Filter of runs that have not ended. `labels` are those of their schedules."""

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
