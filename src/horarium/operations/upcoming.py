"""What comes next of a schedule: the next occurrences of its spec, also while it is paused."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from horarium.instant import Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.store.schedules.rows import ScheduleRow

NEXT_FIRES = 5


@dataclass(frozen=True, slots=True)
class NextFire:
    nominal: Instant
    due: Instant


def next_fires(row: ScheduleRow, planning: Planning, now: Instant, count: int = NEXT_FIRES) -> tuple[NextFire, ...]:
    """What is due and not yet decided counts as coming; a paused schedule shows what a resume would bring."""
    if row.status is Status.DELETED:
        return ()
    after = row.decided_until if row.status is Status.ACTIVE else max(row.decided_until, now)
    spec = planning.spec
    return tuple(
        NextFire(nominal, spec.due(row.schedule_uid, nominal)) for nominal in islice(spec.occurrences(after), count)
    )


def next_due(row: ScheduleRow, planning: Planning | Exception, now: Instant) -> Instant | None:
    """When it acts next, or would if it were resumed now."""
    if row.status is not Status.PAUSED or isinstance(planning, Exception):
        return row.next_due
    return next((fire.due for fire in next_fires(row, planning, now, count=1)), None)
