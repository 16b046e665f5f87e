"""How a spec meets the changes of the clock: each time that does not exist, or comes twice, with what happens then.

Only for crons whose minute and hour are fixed: the others follow real time, and no change of the clock moves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import assert_never

from horarium.instant import SECOND, Instant
from horarium.recurrence.spec import Spec
from horarium.recurrence.wall import CronSchedule, DstFold, DstGap
from horarium.recurrence.zone import Segment, Zone

_DAY = 86_400
YEAR = 366 * _DAY
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def met_changes(spec: Spec, after: Instant) -> tuple[str, ...]:
    """A sentence for each change of the clock that moves a fire within a year, and within the window of the spec."""
    begin = max(after, spec.start_at or after) // SECOND
    end = after // SECOND + YEAR
    if spec.end_at is not None:
        end = min(end, spec.end_at // SECOND)
    crons = [part for part in spec.parts if isinstance(part, CronSchedule) and part.cron.fixed]
    said = (_sentence(cron, segment) for segment in changes_of(spec.zone, begin, end) for cron in crons)
    # Two crons may lose the same time.
    return tuple(dict.fromkeys(each for each in said if each is not None))


def changes_of(zone: Zone, after: int, until: int) -> Iterator[Segment]:
    """The segments that start with a change of the clock; all in epoch seconds."""
    segment = zone.segment_at(after)
    while segment.stop <= until:
        segment = zone.segment_at(segment.stop)
        if segment.before != segment.offset:
            yield segment


def date_text(wall: int) -> str:
    """Format the date of a wall time in seconds since 1970 began there."""
    return date.fromordinal(wall // _DAY + _EPOCH_ORDINAL).isoformat()


def time_text(wall: int) -> str:
    minute, second = divmod(wall % _DAY, 60)
    return f"{minute // 60:02d}:{minute % 60:02d}" + (f":{second:02d}" if second else "")


def _sentence(schedule: CronSchedule, segment: Segment) -> str | None:
    """None = no fire falls into it."""
    low, high = sorted((segment.start + segment.before, segment.start + segment.offset))
    count, first = schedule.cron.count_local(low, high), schedule.cron.next_local(low)
    if count == 0 or first is None:
        return None
    forward = segment.offset > segment.before
    times = time_text(first) if count == 1 else f"{count} local times from {time_text(first)}"
    if forward:
        what = "does not exist" if count == 1 else "do not exist"
        told = _in_gap(schedule.dst_gap, high, many=count > 1)
    else:
        what = "occurs twice" if count == 1 else "occur twice"
        told = _in_fold(schedule.dst_fold)
    moved = f"moves forward from {time_text(low)} to {time_text(high)}"
    if not forward:
        moved = f"moves back from {time_text(high)} to {time_text(low)}"
    return f"DST on {date_text(first)}: {times} {what}, because the clock in {schedule.zone.key} {moved}; {told}"


def _in_gap(choice: DstGap, end: int, *, many: bool) -> str:
    match choice:
        case DstGap.NEXT_VALID:
            return f"the schedule fires {'once ' if many else ''}at {time_text(end)} (dst_gap next_valid)"
        case DstGap.SKIP:
            return "the schedule does not fire (dst_gap skip)"
        case _:
            assert_never(choice)


def _in_fold(choice: DstFold) -> str:
    match choice:
        case DstFold.FIRST:
            return "the schedule fires at the first (dst_fold first)"
        case DstFold.SECOND:
            return "the schedule fires at the second (dst_fold second)"
        case DstFold.BOTH:
            return "the schedule fires at both (dst_fold both)"
        case _:
            assert_never(choice)
