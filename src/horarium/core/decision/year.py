"""Fires and skips of a schedule on each day of a year, and the fires that a change adds, removes and moves.

A year shows what the forecast says for undecided days, and what history says for decided ones. Where history is not
kept, from the creation of the schedule on, it shows what the spec and the calendars say now. Days are those of the
schedule's own zone, so that one of them may have 23 or 25 hours. Occurrences are counted by arithmetic: a year of
seconds costs what a year of days does.

The fires of a change are counted for seven days, and the first of them are named. The counts are those of the specs,
whatever guards will say. The named ones take calendars and the number of remaining runs into account, since an edit
may change those, too; a condition or a budget is known for now only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby, takewhile
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from horarium.core.decision.facts import Facts, RunTally, SharedFacts
from horarium.core.decision.forecast import Stretch
from horarium.core.decision.guards import GuardQuestion, attached, first_refusal, guards_for
from horarium.core.document.calendar import BlockedDay, CalendarDefinition, check, date_ends, local_date
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Position, Reason
from horarium.core.recurrence.spec import Spec
from horarium.core.recurrence.zone import Zone, zone_names
from horarium.instant import DAY, SECOND, Instant

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
class CountedDay:
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
    days: tuple[CountedDay, ...]
    bounded: bool = False


class Past(NamedTuple):
    """The decided occurrences after `since`: instants in their order, reasons (None = a run) and counts.

    Those of a quarter of an hour stand together at its begin: no day of a zone begins within one.
    """

    since: Instant
    counts: Sequence[_Decided]


def look_at_year(
    planning: Planning,
    calendars: Mapping[str, CalendarDefinition],
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
    zones = {each.timezone or zone for each in obeyed if isinstance(each, CalendarDefinition)} & zone_names()
    days: dict[date, CountedDay] = {}
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
            days[day] = _with(days.get(day) or CountedDay(day), found, refused)
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
        blocked: Callable[[Instant], BlockedDay | None],
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


def _with(day: CountedDay, count: int, refused: _Refused | None) -> CountedDay:
    if refused is None:
        return CountedDay(day.date, day.fires + count, day.skips, day.reasons, day.detail)
    reason, detail = refused
    reasons = {**day.reasons, reason: day.reasons.get(reason, 0) + count}
    return CountedDay(day.date, day.fires, day.skips + count, reasons, day.detail or detail)


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


# ── Changes of fires ──────────────────────────────────────────────────────────────────────────────────


COMPARISON_HORIZON = 7 * DAY

COMPARED: Final = 366 * DAY
"""How far ahead fires are named."""
MAX_CHANGES: Final = 100
MAX_COMPARED: Final = 2_000
# What is farther away than this is another fire, and not the same one at another time.
_REACH: Final = 7 * DAY
_LASTING: Final = (Reason.REMAINING_ACTIONS_EXHAUSTED, Reason.CALENDAR)


def fires_moved(before: Spec | None, after: Spec | None, *, now: Instant) -> tuple[int, int]:
    """Count added and removed fires by arithmetic, since a spec may fire every second; None = nothing fires."""
    until = now + COMPARISON_HORIZON
    old = 0 if before is None else before.count(now, until)
    new = 0 if after is None else after.count(now, until)
    both = 0 if before is None or after is None else _in_both(before, after, now, until)
    return new - both, old - both


def _in_both(one: Spec, other: Spec, now: Instant, until: Instant) -> int:
    """Count common fires: those of the first and those of the second, less those of the union."""
    if one.parts == other.parts and (one.start_at, one.end_at) == (other.start_at, other.end_at):
        return one.count(now, until)
    starts = [each.start_at for each in (one, other) if each.start_at is not None]
    ends = [each.end_at for each in (one, other) if each.end_at is not None]
    start, end = max(starts, default=None), min(ends, default=None)
    united = tuple(dict.fromkeys([*one.parts, *other.parts]))
    first, second, together = (
        replace(one, parts=parts, start_at=start, end_at=end).count(now, until)
        for parts in (one.parts, other.parts, united)
    )
    return first + second - together


# ── by name ──────────────────────────────────────────────────────────────────────────────────────────


class ComingFire(NamedTuple):
    """An occurrence, and whether it fires as far as calendars and `max_runs` go."""

    at: Instant
    fires: bool


@dataclass(frozen=True, slots=True)
class FirePair:
    before: Instant
    after: Instant


@dataclass(frozen=True, slots=True)
class FireComparison:
    """All that differs up to `until`, each in order of time; `bounded`: later ones were not looked at."""

    added: tuple[Instant, ...]
    removed: tuple[Instant, ...]
    moved: tuple[FirePair, ...]
    until: Instant
    bounded: bool


class FireDifference(NamedTuple):
    """A fire of the one and not of the other."""

    at: Instant
    added: bool


def coming_fires(planning: Planning, position: Position, facts: Facts, *, now: Instant) -> Iterator[ComingFire]:
    """Yield the coming occurrences one by one. `facts` hold the calendars that the schedule names."""
    guards = tuple(guard for guard in guards_for(planning, Origin.SCHEDULED) if guard.reason in _LASTING)
    tally = RunTally(planning, position, facts, SharedFacts())
    for nominal in planning.spec.occurrences(now):
        refusal = first_refusal(guards, GuardQuestion(planning, facts, tally, nominal))
        if refusal is not None and refusal[0] is Reason.REMAINING_ACTIONS_EXHAUSTED:
            return  # and it stays so
        if refusal is None:
            tally.bear(held=False)
        yield ComingFire(nominal, refusal is None)


def compare_fires(
    before: Iterable[ComingFire], after: Iterable[ComingFire], zone: Zone, *, now: Instant
) -> FireComparison:
    """Compare the fires of a year before and after an edit, up to a limit; days are those of `zone`."""
    until, bounded, looked = now + COMPARED, False, now
    found: list[FireDifference] = []
    for number, (at, was, is_now) in enumerate(_side_by_side(before, after)):
        if at > until + _REACH or len(found) == 2 * MAX_CHANGES:
            break
        if number == MAX_COMPARED:
            bounded = bounded or at <= until
            until = min(until, looked)
            break
        looked = at
        if was is is_now:
            continue
        # One more than fit: those that follow are only looked at because what fits may have moved there.
        if len(found) == MAX_CHANGES and at <= until:
            until, bounded = found[-1].at, True
        found.append(FireDifference(at, is_now))
    moved, alone = pair_moved(found, zone)
    return FireComparison(
        tuple(each.at for each in alone if each.added and each.at <= until),
        tuple(each.at for each in alone if not each.added and each.at <= until),
        tuple(each for each in moved if min(each.before, each.after) <= until),
        until,
        bounded,
    )


def _side_by_side(before: Iterable[ComingFire], after: Iterable[ComingFire]) -> Iterator[tuple[Instant, bool, bool]]:
    """Each moment of either, in order, and whether it fires in the one and in the other."""
    old, new = iter(before), iter(after)
    one, other = next(old, None), next(new, None)
    while one is not None or other is not None:
        at = min(each.at for each in (one, other) if each is not None)
        was = is_now = False
        if one is not None and one.at == at:
            was, one = one.fires, next(old, None)
        if other is not None and other.at == at:
            is_now, other = other.fires, next(new, None)
        yield at, was, is_now


def pair_moved(found: Sequence[FireDifference], zone: Zone) -> tuple[list[FirePair], list[FireDifference]]:
    """Pair fires that moved to another time and return the others separately, each in order of time.

    On a day that loses as many as it gains, the first lost fire becomes the first gained one, and so on. Of the
    others, each is paired with its nearest neighbour of the other kind; of two equally near, with the later one.
    """
    moved: list[FirePair] = []
    left: list[FireDifference] = []
    for _, same_day in groupby(found, lambda each: _day(each.at, zone)):
        day = list(same_day)
        gone, come = [each for each in day if not each.added], [each for each in day if each.added]
        if len(gone) == len(come):
            moved += [FirePair(one.at, other.at) for one, other in zip(gone, come, strict=True)]
        else:
            left += day
    nearest, alone = _pair_neighbours(left)
    return sorted([*moved, *nearest], key=lambda each: min(each.before, each.after)), alone


def _pair_neighbours(left: Sequence[FireDifference]) -> tuple[list[FirePair], list[FireDifference]]:
    moved: list[FirePair] = []
    alone: list[FireDifference] = []
    place = 0
    while place < len(left):
        one = left[place]
        other = left[place + 1] if place + 1 < len(left) else None
        if other is None or other.added is one.added or other.at - one.at > _REACH or _is_nearer(left, place + 1):
            alone.append(one)
            place += 1
            continue
        moved.append(FirePair(other.at, one.at) if one.added else FirePair(one.at, other.at))
        place += 2
    return moved, alone


def _is_nearer(left: Sequence[FireDifference], place: int) -> bool:
    """Tell whether the next difference is a better partner for this one than the previous difference is."""
    if place + 1 >= len(left) or left[place + 1].added is left[place].added:
        return False
    before, behind = left[place].at - left[place - 1].at, left[place + 1].at - left[place].at
    return behind < before or (behind == before and not left[place].added)


def _day(at: Instant, zone: Zone) -> int:
    second = at // SECOND
    return (second + zone.offset_at(second)) * SECOND // DAY
