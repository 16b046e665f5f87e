"""What a person may not have meant: a list of findings about one expression, none of which refuses it.

Clock changes are looked for in the year after a given moment; the other findings depend on the text alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from horarium.instant import SECOND, Instant
from horarium.recurrence.clock_changes import YEAR, changes_of, date_text, time_text
from horarium.recurrence.cron import Cron
from horarium.recurrence.field import DAY_OF_MONTH, Field, LastDay, NearestWorkday, NthWeekday, Span
from horarium.recurrence.interval import Interval
from horarium.recurrence.spec import compile_spec
from horarium.recurrence.wall import CronSchedule, DstFold, DstGap
from horarium.recurrence.words import (
    MONTH_NAMES,
    WEEKDAY_NAMES,
    duration_words,
    join_words,
    ordinal,
    uses_hash,
    values_of,
)
from horarium.recurrence.zone import Segment, Zone

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
class Finding:
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
) -> tuple[Finding, ...]:
    """Raises `InvalidSpec` for an expression that we refuse; one that never fires is a finding here."""
    spec = compile_spec(cron_expressions=[expr], timezone=timezone, dst_gap=dst_gap, dst_fold=dst_fold, key=key)
    [part] = spec.parts
    if isinstance(part, Interval):
        return tuple(_grid_findings(part, spec.zone))
    assert isinstance(part, CronSchedule)  # one expression is never a one-off
    # A list such as `31,31` would say the same thing twice.
    return tuple(dict.fromkeys(_cron_findings(part, after)))


def _cron_findings(schedule: CronSchedule, after: Instant) -> Iterator[Finding]:
    cron = schedule.cron
    if schedule.next_after(after // SECOND) is None:
        yield Finding(FindingCode.NEVER_FIRES, "the expression has no occurrence within eight years")
    else:
        yield from _clock_change_findings(schedule, after // SECOND)
        yield from _short_month_findings(cron)
    yield from _day_rule_findings(cron)
    for field in cron.fields:
        yield from _step_findings(field)
    yield from _herd_findings(cron)
    if len(cron.text.split()) == 6:
        message = "six fields: the first field is seconds; some other schedulers read the sixth field as the year"
        yield Finding(FindingCode.SIX_FIELDS, message)


# ── clock changes ────────────────────────────────────────────────────────────────────────────────────


def _clock_change_findings(schedule: CronSchedule, after: int) -> Iterator[Finding]:
    for segment in changes_of(schedule.zone, after, after + YEAR):
        if segment.offset > segment.before:
            yield from _gap_findings(schedule, segment)
        else:
            yield from _fold_findings(schedule, segment)


def _gap_findings(schedule: CronSchedule, segment: Segment) -> Iterator[Finding]:
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
        yield Finding(FindingCode.DST_MOVED, message)
        return
    for day in range(low // _DAY, (high - 1) // _DAY + 1):
        wanted = schedule.cron.count_local(day * _DAY, (day + 1) * _DAY)
        if wanted and _fires_on(schedule, day) == 0:
            message = (
                f"DST on {date_text(day * _DAY)}: no occurrence, because the clock moves forward past {_times(wanted)}"
            )
            yield Finding(FindingCode.DST_ZERO_FIRES, message)


def _fold_findings(schedule: CronSchedule, segment: Segment) -> Iterator[Finding]:
    low, high = segment.start + segment.offset, segment.start + segment.before
    for day in range(low // _DAY, (high - 1) // _DAY + 1):
        wanted = schedule.cron.count_local(day * _DAY, (day + 1) * _DAY)
        fires = _fires_on(schedule, day)
        if wanted and fires == 2 * wanted:
            message = (
                f"DST on {date_text(day * _DAY)}: {fires} occurrences instead of {wanted}, because the clock moves back"
            )
            yield Finding(FindingCode.DST_TWO_FIRES, message)


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


def _short_month_findings(cron: Cron) -> Iterator[Finding]:
    items = cron.day_of_month.items
    if not any(isinstance(item, LastDay) for item in items):
        for item in items:
            day = item.low if isinstance(item, Span) else item.day if isinstance(item, NearestWorkday) else 0
            short = [month for month in values_of(cron.month) if _SHORTEST_MONTHS[month - 1] < day]
            if short:
                where = join_words([_month(month, day) for month in short])
                message = f"day {day} does not exist in {where}; use `L` for the last day of the month"
                yield Finding(FindingCode.SHORT_MONTHS, message)
    for rule in cron.day_of_week.rules:
        if isinstance(rule, NthWeekday) and rule.nth == 5:
            name = WEEKDAY_NAMES[rule.weekday]
            message = f"most months have no fifth {name}; use `{rule.weekday}L` for the last {name} of the month"
            yield Finding(FindingCode.SHORT_MONTHS, message)


def _month(month: int, day: int) -> str:
    return f"{MONTH_NAMES[month - 1]}{' of common years' if (month, day) == (2, 29) else ''}"


def _day_rule_findings(cron: Cron) -> Iterator[Finding]:
    fields = cron.day_of_month, cron.day_of_week
    whole = [field for field in fields if field.unrestricted]
    starred = [field for field in fields if field.starred]
    if len(whole) == 2 or (starred and whole):
        return
    if starred:
        shown = " and ".join(f"{field.kind.name} `{field.text}`" for field in starred)
        message = f"{shown} starts with a star, so day-of-month and day-of-week must both match"
        yield Finding(FindingCode.STAR_DAY, message)
    elif whole:
        message = (
            f"{whole[0].kind.name} `{whole[0].text}` matches every day, so the other day field has no effect; use `*`"
        )
        yield Finding(FindingCode.EITHER_DAY, message)
    else:
        message = "day-of-month and day-of-week are both restricted; a day matches if either field matches"
        yield Finding(FindingCode.EITHER_DAY, message)


# ── steps, herds, grids ──────────────────────────────────────────────────────────────────────────────


def _step_findings(field: Field) -> Iterator[Finding]:
    for text, item in zip(field.text.split(","), field.items, strict=True):
        if not isinstance(item, Span) or item.step == 1:
            continue
        name, low, end = field.kind.name, item.low, field.kind.last_step
        last = item.high - (item.high - low) % item.step
        turn = end - last + low - field.kind.low + 1
        if last == low:
            message = f"{name} `{text}`: the step exceeds the range, so only {low} matches"
            yield Finding(FindingCode.STEP_BEYOND_RANGE, message)
        elif item.high == end and field.kind is DAY_OF_MONTH:
            message = f"{name} `{text}` restarts each month: the {ordinal(low)} follows the {ordinal(last)}"
            yield Finding(FindingCode.UNEVEN_STEP, message)
        elif item.high == end and turn != item.step:
            message = f"{name} `{text}` restarts after {last}: the step from {last} to {low} is {turn}, not {item.step}"
            yield Finding(FindingCode.UNEVEN_STEP, message)


def _herd_findings(cron: Cron) -> Iterator[Finding]:
    on_the_hour = values_of(cron.second) == [0] and values_of(cron.minute) == [0]
    if on_the_hour and not uses_hash(cron.minute):
        message = "many schedules fire at minute 0; `H` selects a minute from the schedule ID and spreads the load"
        yield Finding(FindingCode.HERD, message)


def _grid_findings(interval: Interval, zone: Zone) -> Iterator[Finding]:
    every = duration_words(interval.every)
    if interval.every > _DAY and interval.every % _DAY == 0:
        message = f"steps of {every} are counted from Thursday, 1 January 1970, 00:00 UTC, not from a schedule's start"
        yield Finding(FindingCode.EVERY_GRID, message)
    elif _DAY % interval.every:
        message = f"steps of {every} do not divide a day, so the times of day differ from one day to the next"
        yield Finding(FindingCode.EVERY_GRID, message)
    if zone.key != "UTC":
        message = f"intervals are counted in UTC; the time zone {zone.key} and its DST changes have no effect"
        yield Finding(FindingCode.EVERY_GRID, message)
