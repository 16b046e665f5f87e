"""What became of a schedule that somebody wanted changed."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.instant import Instant
from horarium.operations.resources import Opened
from horarium.operations.upcoming import next_due
from horarium.schedule.position import Status
from horarium.wire.outcomes import WriteOutcome


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """`changed` are the top-level names of the document that differ; `version` is the ETag from now on.

    `exhausted`: it is deleted, because its runs are used up, and what was asked for says no more than it did.
    """

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    outcome: WriteOutcome
    version: int
    status: Status
    next_due: Instant | None
    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    exhausted: bool = False


def unchanged(opened: Opened) -> ScheduleChange:
    row, coming = opened.row, next_due(opened.row, opened.planning, opened.now)
    return ScheduleChange(
        row.schedule_uid, row.namespace, row.schedule_id, WriteOutcome.UNCHANGED, row.version, row.status, coming
    )
