"""What a schedule has on each day of a year: how many fires, and how many that its calendars refuse.

It is an overlay and no history. Past days too are what the spec and the calendars say now; a condition, a budget or an
overlap is nobody's guess for a whole year. Days are those of the schedule's own zone, so that one of them may have 23
or 25 hours. Occurrences are counted by arithmetic: a year of seconds costs what a year of days does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile
from typing import Final

from horarium.decision.guards import attached
from horarium.instant import DAY, Instant
from horarium.recurrence.zone import zone_names
from horarium.schedule.calendar import Calendar, check, date_ends, local_date
from horarium.schedule.planning import Planning
from horarium.schedule.reason import Reason

FIRST_YEAR: Final = 1901
LAST_YEAR: Final = 9891
"""Within these bounds there are zones, and occurrences."""

MAX_WORK: Final = 200_000
"""Pieces of days that are counted, times the parts of the spec. A year has 366 pieces for each zone that its calendars
count days in, so only a spec of a hundred parts, with calendars of many zones, ever meets it.
"""

# Up to so many steps the occurrences are walked over: fewer than there are pieces of a year.
_SPARSE: Final = 5_000
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class YearDay:
    """`reasons` counts what is skipped by its reason; `detail` says of the first of them what stands against it."""

    date: date
    fires: int = 0
    skips: int = 0
    reasons: Mapping[Reason, int] = field(default_factory=dict)
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class YearOverview:
    """Days on which nothing happens are left out. `bounded`: after the last one nobody has looked."""

    year: int
    timezone: str
    days: tuple[YearDay, ...]
    bounded: bool = False


def look_at_year(
    planning: Planning, calendars: Mapping[str, Calendar], year: int, *, max_work: int = MAX_WORK
) -> YearOverview:
    """`calendars` by the names under which the schedule attaches them; one that is missing allows nothing."""
    spec, zone = planning.spec, planning.spec.zone.key
    obeyed = attached(planning, calendars)
    zones = {each.timezone or zone for each in obeyed if isinstance(each, Calendar)} & zone_names()
    days: dict[date, YearDay] = {}

    def add(at: Instant, count: int) -> None:
        day = local_date(zone, at)
        if day.year != year:  # where clocks go back over the end of a year
            return
        blocked = check(obeyed, at, zone)
        days[day] = _with(days.get(day) or YearDay(day), count, None if blocked is None else blocked.detail)

    first, end_of_year = _bounds(zone, year)
    if spec.steps(first - 1, end_of_year - 1) <= _SPARSE:
        for nominal in takewhile(lambda each: each < end_of_year, spec.occurrences(first - 1)):
            add(nominal, 1)
        return YearOverview(year, zone, tuple(days.values()))
    left, count = max_work // len(spec.parts), spec.counter()
    for begin, end in _pieces(frozenset({zone, *zones}), zone, year):
        if left <= 0:
            return YearOverview(year, zone, tuple(days.values()), bounded=True)
        left -= 1
        if found := count(begin - 1, end - 1):
            add(begin, found)
    return YearOverview(year, zone, tuple(days.values()))


def _bounds(zone: str, year: int) -> tuple[Instant, Instant]:
    """From the first instant of the year in the zone to before the first one of the next year."""
    pieces = [*_pieces(frozenset({zone}), zone, year)]
    return pieces[0][0], pieces[-1][1]


def _with(day: YearDay, count: int, refusal: str | None) -> YearDay:
    if refusal is None:
        return YearDay(day.date, day.fires + count, day.skips, day.reasons, day.detail)
    skips = day.skips + count
    return YearDay(day.date, day.fires, skips, {Reason.CALENDAR: skips}, day.detail or refusal)


def _pieces(zones: frozenset[str], zone: str, year: int) -> Iterator[tuple[Instant, Instant]]:
    """From one to before the other it is one date in each of the zones; together they are the year in `zone`.

    Where clocks go back over midnight a date has two of them that do not touch.
    """
    at = (date(year, 1, 1).toordinal() - _EPOCH_ORDINAL - 2) * DAY  # no zone is two days away
    while (then := local_date(zone, at).year) <= year:
        end = min(date_ends(each, at) for each in zones)
        if then == year:
            yield at, end
        at = end
