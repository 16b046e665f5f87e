"""Which fires a change brings, takes away and moves: all of them counted for seven days, the first of them by name.

The counts are those of the specs, whatever guards will say. What is named takes calendars and the number of runs that
are left into account, since an edit may change those, too; a condition or a budget is known for now only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from horarium.decision.facts import Facts, Shared, Tally
from horarium.decision.guards import Question, first_refusal, guards_for
from horarium.instant import DAY, SECOND, Instant
from horarium.recurrence.spec import Spec
from horarium.recurrence.zone import Zone
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

HORIZON = 7 * DAY

COMPARED: Final = 366 * DAY
"""How far ahead fires are named."""
MAX_CHANGES: Final = 100
MAX_COMPARED: Final = 2_000
# What is farther away than this is another fire, and not the same one at another time.
_REACH: Final = 7 * DAY
_LASTING: Final = (Reason.REMAINING_ACTIONS_EXHAUSTED, Reason.CALENDAR)


def fires_moved(before: Spec | None, after: Spec | None, *, now: Instant) -> tuple[int, int]:
    """Count added and removed fires by arithmetic, since a spec may fire every second; None = nothing fires."""
    until = now + HORIZON
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


class Coming(NamedTuple):
    """An occurrence, and whether it fires as far as calendars and `max_runs` go."""

    at: Instant
    fires: bool


@dataclass(frozen=True, slots=True)
class MovedFire:
    before: Instant
    after: Instant


@dataclass(frozen=True, slots=True)
class FireChanges:
    """All that differs up to `until`, each in order of time; `bounded`: later ones were not looked at."""

    added: tuple[Instant, ...]
    removed: tuple[Instant, ...]
    moved: tuple[MovedFire, ...]
    until: Instant
    bounded: bool


class Difference(NamedTuple):
    """A fire of the one and not of the other."""

    at: Instant
    added: bool


def coming(planning: Planning, position: Position, facts: Facts, *, now: Instant) -> Iterator[Coming]:
    """Yield the coming occurrences one by one. `facts` hold the calendars that the schedule names."""
    guards = tuple(guard for guard in guards_for(planning, Origin.SCHEDULED) if guard.reason in _LASTING)
    tally = Tally(planning, position, facts, Shared())
    for nominal in planning.spec.occurrences(now):
        refusal = first_refusal(guards, Question(planning, facts, tally, nominal))
        if refusal is not None and refusal[0] is Reason.REMAINING_ACTIONS_EXHAUSTED:
            return  # and it stays so
        if refusal is None:
            tally.bear(held=False)
        yield Coming(nominal, refusal is None)


def compare_fires(before: Iterable[Coming], after: Iterable[Coming], zone: Zone, *, now: Instant) -> FireChanges:
    """Compare the fires of a year before and after an edit, up to a limit; days are those of `zone`."""
    until, bounded, looked = now + COMPARED, False, now
    found: list[Difference] = []
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
        found.append(Difference(at, is_now))
    moved, alone = pair_moved(found, zone)
    return FireChanges(
        tuple(each.at for each in alone if each.added and each.at <= until),
        tuple(each.at for each in alone if not each.added and each.at <= until),
        tuple(each for each in moved if min(each.before, each.after) <= until),
        until,
        bounded,
    )


def _side_by_side(before: Iterable[Coming], after: Iterable[Coming]) -> Iterator[tuple[Instant, bool, bool]]:
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


def pair_moved(found: Sequence[Difference], zone: Zone) -> tuple[list[MovedFire], list[Difference]]:
    """Pair fires that moved to another time and return the others separately, each in order of time.

    On a day that loses as many as it gains, the first lost fire becomes the first gained one, and so on. Of the
    others, each is paired with its nearest neighbour of the other kind; of two equally near, with the later one.
    """
    moved: list[MovedFire] = []
    left: list[Difference] = []
    for _, same_day in groupby(found, lambda each: _day(each.at, zone)):
        day = list(same_day)
        gone, come = [each for each in day if not each.added], [each for each in day if each.added]
        if len(gone) == len(come):
            moved += [MovedFire(one.at, other.at) for one, other in zip(gone, come, strict=True)]
        else:
            left += day
    nearest, alone = _pair_neighbours(left)
    return sorted([*moved, *nearest], key=lambda each: min(each.before, each.after)), alone


def _pair_neighbours(left: Sequence[Difference]) -> tuple[list[MovedFire], list[Difference]]:
    moved: list[MovedFire] = []
    alone: list[Difference] = []
    place = 0
    while place < len(left):
        one = left[place]
        other = left[place + 1] if place + 1 < len(left) else None
        if other is None or other.added is one.added or other.at - one.at > _REACH or _is_nearer(left, place + 1):
            alone.append(one)
            place += 1
            continue
        moved.append(MovedFire(other.at, one.at) if one.added else MovedFire(one.at, other.at))
        place += 2
    return moved, alone


def _is_nearer(left: Sequence[Difference], place: int) -> bool:
    """Tell whether the next difference is a better partner for this one than the previous difference is."""
    if place + 1 >= len(left) or left[place + 1].added is left[place].added:
        return False
    before, behind = left[place].at - left[place - 1].at, left[place + 1].at - left[place].at
    return behind < before or (behind == before and not left[place].added)


def _day(at: Instant, zone: Zone) -> int:
    second = at // SECOND
    return (second + zone.offset_at(second)) * SECOND // DAY
