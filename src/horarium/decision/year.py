"""The fires and skips of a schedule on each day of a year.

What is not decided yet is what the forecast says, what was decided is what history says. Where history is not kept,
from the creation of the schedule on, it is what the spec and the calendars say now. Days are those of the schedule's
own zone, so that one of them may have 23 or 25 hours. Occurrences are counted by arithmetic: a year of seconds costs
what a year of days does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from horarium.decision.forecast_rows import Stretch
from horarium.decision.guards import attached
from horarium.instant import DAY, Instant
from horarium.recurrence.spec import Spec
from horarium.recurrence.zone import zone_names
from horarium.schedule.calendar import Blocked, Calendar, check, date_ends, local_date
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
# Later than any occurrence.
_NEVER: Final = 2**62
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class YearDay:
    """`reasons` counts what is skipped by its reason; `detail` says of the first of them what stands against it."""

    date: date
    fires: int = 0
    skips: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class YearOverview:
    """Days on which nothing happens are left out. `bounded`: after the last one nobody has looked."""

    year: int
    timezone: str
    days: tuple[YearDay, ...]
    bounded: bool = False


class Past(NamedTuple):
    """The decided occurrences after `since`: instants in their order, reasons (None = a run) and counts.

    Those of a quarter of an hour stand together at its begin: no day of a zone begins within one.
    """

    since: Instant
    counts: Sequence[_Decided]


def look_at_year(
    planning: Planning,
    calendars: Mapping[str, Calendar],
    year: int,
    *,
    max_work: int = MAX_WORK,
    since: Instant | None = None,
    past: Past | None = None,
    decided_until: Instant = _NEVER,
    coming: Callable[[Instant], Iterable[Stretch]] | None = None,
) -> YearOverview:
    """`calendars` by the names under which the schedule attaches them; one that is missing allows nothing.

    Nothing is shown up to `since`. After `decided_until` the counts come from `coming`, which is called with the
    instant after which the forecast begins.
    """
    spec, zone = planning.spec, planning.spec.zone.key
    obeyed = attached(planning, calendars)
    zones = {each.timezone or zone for each in obeyed if isinstance(each, Calendar)} & zone_names()
    days: dict[date, YearDay] = {}
    left: float = max_work // len(spec.parts)
    count = _sparse_counter(spec, *_bounds(zone, year))
    if count is None:
        count = spec.counter()
    else:
        left = inf
    counted = _Counted(count, lambda at: check(obeyed, at, zone), past, decided_until, coming)
    for begin, end in _pieces(frozenset({zone, *zones}), zone, year):
        if left <= 0:
            return YearOverview(year, zone, tuple(days.values()), bounded=True)
        left -= 1
        low, high = begin - 1 if since is None else max(begin - 1, since), end - 1
        if high <= low:
            continue
        day = local_date(zone, begin)
        for found, refused in counted.in_piece(begin, low, high):
            days[day] = _with(days.get(day) or YearDay(day), found, refused)
    return YearOverview(year, zone, tuple(days.values()))


_Count = Callable[[Instant, Instant], int]


def _sparse_counter(spec: Spec, begin: Instant, end: Instant) -> _Count | None:
    """Walk over the few occurrences of a year once; None = there are many, which arithmetic counts."""
    if spec.steps(begin - 1, end - 1) > _SPARSE:
        return None
    nominals = [*takewhile(lambda each: each < end, spec.occurrences(begin - 1))]
    return lambda after, until: bisect_right(nominals, until) - bisect_right(nominals, after)


def _bounds(zone: str, year: int) -> tuple[Instant, Instant]:
    """From the first instant of the year in the zone to before the first one of the next year."""
    pieces = [*_pieces(frozenset({zone}), zone, year)]
    return pieces[0][0], pieces[-1][1]


class _Counted:
    """Counts in one piece of a day after the other: of the spec, of what was decided, and of the forecast."""

    def __init__(
        self,
        count: _Count,
        blocked: Callable[[Instant], Blocked | None],
        past: Past | None,
        decided_until: Instant,
        coming: Callable[[Instant], Iterable[Stretch]] | None,
    ) -> None:
        self._count, self._blocked = count, blocked
        self._past, self._decided_until, self._coming = past, decided_until, coming
        self._forecast: Iterator[Stretch] | None = None
        self._stretch: Stretch | None = None

    def in_piece(self, begin: Instant, low: Instant, high: Instant) -> Iterator[tuple[int, _Refused | None]]:
        """Count the occurrences in (low, high] of a piece by decision; None = dispatched."""
        past, until = self._past, self._decided_until
        by_spec = until if past is None else min(until, past.since)
        found = self._count(low, min(high, by_spec)) if low < by_spec else 0
        if found:
            blocked = self._blocked(begin)
            yield found, None if blocked is None else (Reason.CALENDAR, blocked.detail)
        for _, reason, count in () if past is None else _within(past.counts, begin, high):
            yield count, None if reason is None else (reason, None)
        if high > until and self._coming is not None:
            yield from self._foreseen(max(low, until), high, self._coming)

    def _foreseen(
        self, low: Instant, high: Instant, coming: Callable[[Instant], Iterable[Stretch]]
    ) -> Iterator[tuple[int, _Refused | None]]:
        if self._forecast is None:
            self._forecast = iter(coming(low))
            self._stretch = next(self._forecast, None)
        while (stretch := self._stretch) is not None and stretch.first <= high:
            count = self._count(max(low, stretch.first - 1), min(high, stretch.last))
            if count:
                yield count, None if stretch.reason is None else (stretch.reason, _detail(stretch))
            if stretch.last > high:
                return
            self._stretch = next(self._forecast, None)


_Decided = tuple[Instant, str | None, int]


def _within(counts: Sequence[_Decided], begin: Instant, last: Instant) -> Sequence[_Decided]:
    return counts[bisect_left(counts, begin, key=_AT) : bisect_right(counts, last, key=_AT)]


_AT = itemgetter(0)
_Refused = tuple[str, str | None]


def _detail(stretch: Stretch) -> str | None:
    text = None if stretch.detail is None else stretch.detail.get("text")
    return text if isinstance(text, str) else None


def _with(day: YearDay, count: int, refused: _Refused | None) -> YearDay:
    if refused is None:
        return YearDay(day.date, day.fires + count, day.skips, day.reasons, day.detail)
    reason, detail = refused
    reasons = {**day.reasons, reason: day.reasons.get(reason, 0) + count}
    return YearDay(day.date, day.fires, day.skips + count, reasons, day.detail or detail)


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
