"""Findings about one expression that its author may not have meant, the clock changes that a spec meets, and its gaps.

No finding refuses an expression. Clock changes are looked for in the year after a given moment; the other findings
depend on the text alone. A clock change moves only crons whose minute and hour are fixed: the others follow real
time.

The shortest gap is found by a bounded look. Each part is looked at alone, since a cron that is dense in December
only would be hidden behind an hourly one; then all of them together, for the gaps between parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import islice, pairwise
from typing import assert_never

from horarium.core.recurrence.cron import Cron
from horarium.core.recurrence.field import DAY_OF_MONTH, CronField, FieldSpan, LastDay, NearestWorkday, NthWeekday
from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap, Interval
from horarium.core.recurrence.spec import Part, Spec, compile_spec
from horarium.core.recurrence.words import (
    MONTH_NAMES,
    WEEKDAY_NAMES,
    duration_words,
    join_words,
    ordinal,
    uses_hash,
    values_of,
)
from horarium.core.recurrence.zone import Segment, Zone
from horarium.instant import SECOND, Instant

# ── Clock changes ─────────────────────────────────────────────────────────────────────────────────────


_SECONDS_OF_DAY = 86_400
YEAR = 366 * _SECONDS_OF_DAY
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
    return date.fromordinal(wall // _SECONDS_OF_DAY + _EPOCH_ORDINAL).isoformat()


def time_text(wall: int) -> str:
    minute, second = divmod(wall % _SECONDS_OF_DAY, 60)
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


# ── Gaps ──────────────────────────────────────────────────────────────────────────────────────────────


# The seconds of one minute and more: whatever a cron says, its closest seconds are among them.
_OF_A_PART = 120
_OF_ALL = 1_000


def shortest_gap(spec: Spec, *, after: Instant, enough: int) -> int | None:
    """In seconds; None = there are no two occurrences. A gap below `enough` ends the search."""
    found: int | None = None
    for gap in _gaps(spec, after):
        if found is None or gap < found:
            found = gap
        if found < enough:
            break
    return found


def _gaps(spec: Spec, after: Instant) -> Iterator[int]:
    begin = max(after, spec.start_at or after) // SECOND
    end = None if spec.end_at is None else spec.end_at // SECOND
    if len(spec.parts) > 1:
        for part in spec.parts:
            yield from _of_part(part, begin, end)
        yield from ((two - one) // SECOND for one, two in pairwise(islice(spec.occurrences(after), _OF_ALL)))
    else:
        yield from _of_part(spec.parts[0], begin, end)


def _of_part(part: Part, begin: int, end: int | None) -> Iterator[int]:
    if isinstance(part, Interval):
        yield part.every
        return
    before = part.next_after(begin - 1)
    for _ in range(_OF_A_PART):
        following = None if before is None else part.next_after(before)
        if before is None or following is None or (end is not None and following > end):
            return
        yield following - before
        before = following


# ── Findings ──────────────────────────────────────────────────────────────────────────────────────────


_DAY = 86_400
_SHORTEST_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class FindingCode(StrEnum):
    NEVER_FIRES = "never_fires"
    DST_ZERO_FIRES = "dst_zero_fires"
    DST_MOVED = "dst_moved"
    DST_TWO_FIRES = "dst_two_fires"
    SHORT_MONTHS = "short_months"
    EITHER_DAY = "either_day"
    STAR_DAY = "star_day"
    STEP_BEYOND_RANGE = "step_beyond_range"
    UNEVEN_STEP = "uneven_step"
    HERD = "herd"
    SIX_FIELDS = "six_fields"
    EVERY_GRID = "every_grid"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """`code` is one word for a program, `message` one sentence for a person."""

    code: FindingCode
    message: str


def lint(
    expr: str,
    *,
    timezone: str | None = None,
    after: Instant,
    key: str | None = None,
    dst_gap: DstGap | str = DstGap.NEXT_VALID,
    dst_fold: DstFold | str = DstFold.FIRST,
) -> tuple[LintFinding, ...]:
    """Raises `InvalidSpec` for an expression that we refuse; one that never fires is a finding here."""
    spec = compile_spec(cron_expressions=[expr], timezone=timezone, dst_gap=dst_gap, dst_fold=dst_fold, key=key)
    [part] = spec.parts
    if isinstance(part, Interval):
        return tuple(_grid_findings(part, spec.zone))
    assert isinstance(part, CronSchedule)  # one expression is never a one-off
    # A list such as `31,31` would say the same thing twice.
    return tuple(dict.fromkeys(_cron_findings(part, after)))


def _cron_findings(schedule: CronSchedule, after: Instant) -> Iterator[LintFinding]:
    cron = schedule.cron
    if schedule.next_after(after // SECOND) is None:
        yield LintFinding(FindingCode.NEVER_FIRES, "the expression has no occurrence within eight years")
    else:
        yield from _clock_change_findings(schedule, after // SECOND)
        yield from _short_month_findings(cron)
    yield from _day_rule_findings(cron)
    for field in cron.fields:
        yield from _step_findings(field)
    yield from _herd_findings(cron)
    if len(cron.text.split()) == 6:
        message = "six fields: the first field is seconds; some other schedulers read the sixth field as the year"
        yield LintFinding(FindingCode.SIX_FIELDS, message)


# ── clock changes ────────────────────────────────────────────────────────────────────────────────────


def _clock_change_findings(schedule: CronSchedule, after: int) -> Iterator[LintFinding]:
    for segment in changes_of(schedule.zone, after, after + YEAR):
        if segment.offset > segment.before:
            yield from _gap_findings(schedule, segment)
        else:
            yield from _fold_findings(schedule, segment)


def _gap_findings(schedule: CronSchedule, segment: Segment) -> Iterator[LintFinding]:
    low, high = segment.start + segment.before, segment.start + segment.offset
    lost = schedule.cron.count_local(low, high)
    first = schedule.cron.next_local(low)
    if lost == 0 or first is None:
        return
    if schedule.cron.fixed and schedule.dst_gap is DstGap.NEXT_VALID:
        what = (
            f"{time_text(first)} does not exist; the schedule fires"
            if lost == 1
            else f"{lost} local times do not exist; the schedule fires once,"
        )
        end = time_text(high) if date_text(high) == date_text(first) else f"{time_text(high)} on {date_text(high)}"
        same = " (together with the regular occurrence)" if schedule.cron.next_local(high) == high else ""
        message = f"DST on {date_text(first)}: {what} at {end}{same}"
        yield LintFinding(FindingCode.DST_MOVED, message)
        return
    for day in range(low // _DAY, (high - 1) // _DAY + 1):
        wanted = schedule.cron.count_local(day * _DAY, (day + 1) * _DAY)
        if wanted and _fires_on(schedule, day) == 0:
            message = (
                f"DST on {date_text(day * _DAY)}: no occurrence, because the clock moves forward past {_times(wanted)}"
            )
            yield LintFinding(FindingCode.DST_ZERO_FIRES, message)


def _fold_findings(schedule: CronSchedule, segment: Segment) -> Iterator[LintFinding]:
    low, high = segment.start + segment.offset, segment.start + segment.before
    for day in range(low // _DAY, (high - 1) // _DAY + 1):
        wanted = schedule.cron.count_local(day * _DAY, (day + 1) * _DAY)
        fires = _fires_on(schedule, day)
        if wanted and fires == 2 * wanted:
            message = (
                f"DST on {date_text(day * _DAY)}: {fires} occurrences instead of {wanted}, because the clock moves back"
            )
            yield LintFinding(FindingCode.DST_TWO_FIRES, message)


def _fires_on(schedule: CronSchedule, day: int) -> int:
    """Count fires on this local date, which may come in several pieces."""
    begin, end = day * _DAY, (day + 1) * _DAY
    total, t = 0, begin - 2 * _DAY  # no offset from UTC is as long as two days
    while t < end + 2 * _DAY:
        segment = schedule.zone.segment_at(t)
        low = max(segment.start, begin - segment.offset)
        high = min(segment.stop, end - segment.offset)
        if low < high:
            total += schedule.count(low - 1, high - 1)
        t = segment.stop
    return total


def _times(count: int) -> str:
    return "the only time of that day" if count == 1 else f"all {count} times of that day"


# ── days and months ──────────────────────────────────────────────────────────────────────────────────


def _short_month_findings(cron: Cron) -> Iterator[LintFinding]:
    items = cron.day_of_month.items
    if not any(isinstance(item, LastDay) for item in items):
        for item in items:
            day = item.low if isinstance(item, FieldSpan) else item.day if isinstance(item, NearestWorkday) else 0
            short = [month for month in values_of(cron.month) if _SHORTEST_MONTHS[month - 1] < day]
            if short:
                where = join_words([_month(month, day) for month in short])
                message = f"day {day} does not exist in {where}; use `L` for the last day of the month"
                yield LintFinding(FindingCode.SHORT_MONTHS, message)
    for rule in cron.day_of_week.rules:
        if isinstance(rule, NthWeekday) and rule.nth == 5:
            name = WEEKDAY_NAMES[rule.weekday]
            message = f"most months have no fifth {name}; use `{rule.weekday}L` for the last {name} of the month"
            yield LintFinding(FindingCode.SHORT_MONTHS, message)


def _month(month: int, day: int) -> str:
    return f"{MONTH_NAMES[month - 1]}{' of common years' if (month, day) == (2, 29) else ''}"


def _day_rule_findings(cron: Cron) -> Iterator[LintFinding]:
    fields = cron.day_of_month, cron.day_of_week
    whole = [field for field in fields if field.unrestricted]
    starred = [field for field in fields if field.starred]
    if len(whole) == 2 or (starred and whole):
        return
    if starred:
        shown = " and ".join(f"{field.kind.name} `{field.text}`" for field in starred)
        message = f"{shown} starts with a star, so day-of-month and day-of-week must both match"
        yield LintFinding(FindingCode.STAR_DAY, message)
    elif whole:
        message = (
            f"{whole[0].kind.name} `{whole[0].text}` matches every day, so the other day field has no effect; use `*`"
        )
        yield LintFinding(FindingCode.EITHER_DAY, message)
    else:
        message = "day-of-month and day-of-week are both restricted; a day matches if either field matches"
        yield LintFinding(FindingCode.EITHER_DAY, message)


# ── steps, herds, grids ──────────────────────────────────────────────────────────────────────────────


def _step_findings(field: CronField) -> Iterator[LintFinding]:
    for text, item in zip(field.text.split(","), field.items, strict=True):
        if not isinstance(item, FieldSpan) or item.step == 1:
            continue
        name, low, end = field.kind.name, item.low, field.kind.last_step
        last = item.high - (item.high - low) % item.step
        turn = end - last + low - field.kind.low + 1
        if last == low:
            message = f"{name} `{text}`: the step exceeds the range, so only {low} matches"
            yield LintFinding(FindingCode.STEP_BEYOND_RANGE, message)
        elif item.high == end and field.kind is DAY_OF_MONTH:
            message = f"{name} `{text}` restarts each month: the {ordinal(low)} follows the {ordinal(last)}"
            yield LintFinding(FindingCode.UNEVEN_STEP, message)
        elif item.high == end and turn != item.step:
            message = f"{name} `{text}` restarts after {last}: the step from {last} to {low} is {turn}, not {item.step}"
            yield LintFinding(FindingCode.UNEVEN_STEP, message)


def _herd_findings(cron: Cron) -> Iterator[LintFinding]:
    on_the_hour = values_of(cron.second) == [0] and values_of(cron.minute) == [0]
    if on_the_hour and not uses_hash(cron.minute):
        message = "many schedules fire at minute 0; `H` selects a minute from the schedule ID and spreads the load"
        yield LintFinding(FindingCode.HERD, message)


def _grid_findings(interval: Interval, zone: Zone) -> Iterator[LintFinding]:
    every = duration_words(interval.every)
    if interval.every > _DAY and interval.every % _DAY == 0:
        message = f"steps of {every} are counted from Thursday, 1 January 1970, 00:00 UTC, not from a schedule's start"
        yield LintFinding(FindingCode.EVERY_GRID, message)
    elif _DAY % interval.every:
        message = f"steps of {every} do not divide a day, so the times of day differ from one day to the next"
        yield LintFinding(FindingCode.EVERY_GRID, message)
    if zone.key != "UTC":
        message = f"intervals are counted in UTC; the time zone {zone.key} and its DST changes have no effect"
        yield LintFinding(FindingCode.EVERY_GRID, message)
