"""Parts of a spec: crons in a zone, fixed intervals, and the number of moments that several parts have together.

A cron in a zone follows Vixie's rule. A job with a wildcard minute or hour follows real time: it fires at every
instant whose wall clock matches. A job whose minute and hour are fixed fires once for each wall time that it names:
inside a gap at the gap's end, inside a repeated hour at the first pass, unless the user chose otherwise.

An interval is a grid of whole seconds anchored at the Unix epoch in UTC.

Moments that two parts share are one occurrence, so the counts of parts do not add up. `Union` counts a day at a
time: a day is a number of 86,400 bits, a bit for each second, and parts unite by OR. Which crons match a day depends
on its month alone (28 shapes of twelve months), so a century has a few hundred different months, whatever the crons.
An interval shifts by the rest of the day's division by it; most intervals divide the day and never shift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from horarium.core.recurrence.cron import Cron, month_length
from horarium.core.recurrence.zone import EARLIEST, LATEST, Segment, Zone, parse_duration
from horarium.errors import InvalidSpec

# ── Crons in a zone ───────────────────────────────────────────────────────────────────────────────────


# No clock change moves the wall by more than a day: two days before a match nothing special can happen.
_CALM = 2 * 86_400


class DstGap(StrEnum):
    """Treatment of a fixed-time job whose wall time does not exist."""

    NEXT_VALID = "next_valid"
    SKIP = "skip"


class DstFold(StrEnum):
    """Choice of the passes of a repeated hour for a fixed-time job."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """All arguments and answers are epoch seconds."""

    cron: Cron
    zone: Zone
    dst_gap: DstGap = DstGap.NEXT_VALID
    dst_fold: DstFold = DstFold.FIRST
    _fires_at_gap_end: bool = field(init=False, repr=False)
    _first_pass_only: bool = field(init=False, repr=False)
    _second_pass_only: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        fixed = self.cron.fixed
        object.__setattr__(self, "_fires_at_gap_end", fixed and self.dst_gap is DstGap.NEXT_VALID)
        object.__setattr__(self, "_first_pass_only", fixed and self.dst_fold is DstFold.FIRST)
        object.__setattr__(self, "_second_pass_only", fixed and self.dst_fold is DstFold.SECOND)

    def next_after(self, t: int) -> int | None:
        if not EARLIEST <= t <= LATEST:
            return None
        segment = self.zone.segment_at(t + 1)
        start, stop, offset, before, after = segment
        wall = self.cron.next_local(t + 1 + offset)
        if wall is None:
            return None
        # Past the gap's end or the repeated stretch at this segment's start, and before those at its stop.
        if t >= start and t - start > before - offset and wall < stop + min(offset, after):
            return wall - offset
        return self._next_near_change(t, segment, wall)

    def _next_near_change(self, t: int, segment: Segment, wall: int | None) -> int | None:
        """The careful walk from segment to segment."""
        if segment.start == t + 1 and self.fires_at_start(segment):
            return t + 1
        low, high = self.walls(segment)
        # Inside a first pass that was not chosen the search starts where the second pass will.
        if not low <= t + 1 + segment.offset <= high:
            wall = self.cron.next_local(max(low, min(t + 1 + segment.offset, high)))
        while wall is not None and wall < LATEST:
            if wall < high:
                return wall - segment.offset
            following = self.zone.segment_at(self._leap(segment, wall))
            # `wall` is the first match at or after `high`, so this asks whether the gap holds one.
            if self._fires_at_gap_end and wall < following.start + following.offset:
                return following.start
            low, next_high = self.walls(following)
            if wall < low or low < high:
                wall = self.cron.next_local(low)
            segment, high = following, next_high
        return None

    def _leap(self, segment: Segment, wall: int) -> int:
        """An instant in the segment to look at next: the following one, or one nearer to a far `wall`.

        Until `wall` nothing matches, so whatever lies between may be leapt over; but a repeated hour
        that begins at this segment's end shows its wall times again and must be looked at.
        """
        repeats = segment.after < segment.offset and not (self._first_pass_only or self._second_pass_only)
        return segment.stop if repeats else max(segment.stop, wall - segment.offset - _CALM)

    def previous_before(self, t: int) -> int | None:
        if not EARLIEST <= t <= LATEST:
            return None
        segment = self.zone.segment_at(t - 1)
        low, high = self.walls(segment)
        wall = self.cron.previous_local(min(t - 1 + segment.offset, high - 1))
        while wall is not None and segment.start >= EARLIEST:
            if wall >= low:
                return wall - segment.offset
            if self.fires_at_start(segment):
                return segment.start
            segment = self.zone.segment_at(segment.start - 1)
            low, high = self.walls(segment)
            wall = self.cron.previous_local(high - 1)
        return None

    def contains(self, t: int) -> bool:
        return self.next_after(t - 1) == t

    def count(self, after: int, until: int) -> int:
        """Count fires in (after, until] by arithmetic, whatever the distance."""
        total, t = 0, after + 1
        while t <= until:
            segment = self.zone.segment_at(t)
            low, high = self.walls(segment)
            begin = max(t + segment.offset, low)
            end = min(until + 1 + segment.offset, high)
            total += self.cron.count_local(begin, end)
            if t == segment.start and self.fires_at_start(segment):
                at_start = low == segment.start + segment.offset and self.cron.count_local(low, low + 1)
                total += 0 if at_start else 1
            t = segment.stop
        return total

    def walls(self, segment: Segment) -> tuple[int, int]:
        """The wall times [low, high) that count in a segment: all, but for the pass that was not chosen."""
        start, stop, offset, before, after = segment
        if self._first_pass_only and before > offset:
            return start + before, stop + offset
        if self._second_pass_only and after < offset:
            return start + offset, stop + after
        return start + offset, stop + offset

    def fires_at_start(self, segment: Segment) -> bool:
        """Tell whether the gap before this segment holds a match that moves to its first instant."""
        if not self._fires_at_gap_end or segment.before >= segment.offset:
            return False
        wall = self.cron.next_local(segment.start + segment.before)
        return wall is not None and wall < segment.start + segment.offset


# ── Intervals ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Interval:
    """Every `every` seconds, shifted by `offset`; no zone moves it."""

    every: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise InvalidSpec("every: must be greater than 0", field="every")

    def next_after(self, t: int) -> int:
        return t + self.every - (t - self.offset) % self.every

    def previous_before(self, t: int) -> int:
        return t - 1 - (t - 1 - self.offset) % self.every

    def contains(self, t: int) -> bool:
        return (t - self.offset) % self.every == 0

    def count(self, after: int, until: int) -> int:
        """Count moments in (after, until]."""
        return max(0, (until - self.offset) // self.every - (after - self.offset) // self.every)


def parse_interval(every: str, offset: str | None = None) -> Interval:
    return Interval(
        parse_duration(every, field="every"),
        parse_duration(offset, field="offset") if offset is not None else 0,
    )


# ── Moments of several parts ──────────────────────────────────────────────────────────────────────────


_DAY = 86_400
_WHOLE_DAY = (1 << _DAY) - 1
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
# Days with a count that is remembered: intervals of odd lengths have as many kinds of days as days.
_MAX_DAYS = 16_384

Members: TypeAlias = int
"""A set of crons, a bit for each by its place."""

Phases: TypeAlias = tuple[int, ...]
"""Of each interval, how many seconds before the day's beginning it last came round."""


class Union:
    """All arguments are epoch seconds, or seconds on the wall. All crons stand in one zone."""

    def __init__(self, crons: tuple[CronSchedule, ...], intervals: tuple[Interval, ...]) -> None:
        self._crons = crons
        self._intervals = intervals
        self._seconds = tuple(cron.cron.day_seconds() for cron in crons)
        self._combs = tuple(_comb(interval.every) for interval in intervals)
        self._never_shifts = all(_DAY % interval.every == 0 for interval in intervals)
        # Memos: who matches each day of a month; counts of months and of days that were asked about.
        self._members: dict[tuple[int, int, int], tuple[Members, ...]] = {}
        self._months: dict[tuple[int, int, int, int, Members], int] = {}
        self._days: dict[tuple[Members, Phases], int] = {}
        # The day that was looked at last, and the pieces of a segment: one day is asked about many times in a row.
        self._last_day: tuple[tuple[Members, Phases], int] | None = None
        self._cut: tuple[Segment, list[tuple[int, int, Members]]] | None = None

    def count(self, start: int, stop: int) -> int:
        """Count seconds of [start, stop) that at least one part has."""
        if not self._crons:
            return self._count_walls(start, stop, 0, 0)
        total, t = 0, start
        while t < stop:
            segment = self._crons[0].zone.segment_at(t)
            offset = segment.offset
            for begin, end, members in self._pieces(segment):
                total += self._count_walls(max(begin, t + offset), min(end, stop + offset), offset, members)
            if t == segment.start and self._is_moved_out_of_gap(segment):
                total += 1
            t = segment.stop
        return total

    def _pieces(self, segment: Segment) -> list[tuple[int, int, Members]]:
        """A segment's wall times, cut where a cron begins or ceases to count, with those that count in each piece."""
        if self._cut is None or self._cut[0] != segment:
            self._cut = segment, list(self._cut_into(segment))
        return self._cut[1]

    def _cut_into(self, segment: Segment) -> Iterator[tuple[int, int, Members]]:
        walls = [cron.walls(segment) for cron in self._crons]
        cuts = {segment.start + segment.offset, segment.stop + segment.offset}
        for begin, end in pairwise(sorted(cuts.union(*walls))):
            yield begin, end, sum(1 << place for place, (low, high) in enumerate(walls) if low <= begin < high)

    def _is_moved_out_of_gap(self, segment: Segment) -> bool:
        """Tell whether a cron fires at the end of a gap, and nothing else at the same instant."""
        if not any(cron.fires_at_start(segment) for cron in self._crons):
            return False
        wall = segment.start + segment.offset
        members = (1 << len(self._crons)) - 1
        return self._count_walls(wall, wall + 1, segment.offset, members) == 0

    # ── wall times of one offset ─────────────────────────────────────────────────────────────────────

    def _count_walls(self, begin: int, end: int, offset: int, members: Members) -> int:
        """Matches in [begin, end) on the wall; only `members` of the crons count."""
        if end <= begin:
            return 0
        first_day, first_time = divmod(begin, _DAY)
        last_day, last_time = divmod(end, _DAY)
        total = self._count_days(first_day, last_day, offset, members)
        if first_time:
            total -= self._count_below(first_day, first_time, offset, members)
        if last_time:
            total += self._count_below(last_day, last_time, offset, members)
        return total

    def _count_days(self, first: int, last: int, offset: int, members: Members) -> int:
        total, ordinal, end = 0, first + _EPOCH_ORDINAL, last + _EPOCH_ORDINAL
        while ordinal < end:
            day = date.fromordinal(ordinal)
            length = month_length(day.year, day.month)
            month_first = ordinal - day.day + 1
            stop = min(end, month_first + length)
            shape = (day.month, length, month_first % 7)
            if self._never_shifts and stop - ordinal == length:
                total += self._count_month(shape, ordinal, offset, members)
            else:
                total += self._count_in_month(shape, ordinal, stop, offset, members)
            ordinal = stop
        return total

    def _count_month(self, shape: tuple[int, int, int], ordinal: int, offset: int, members: Members) -> int:
        key = (*shape, offset, members)
        known = self._months.get(key)
        if known is None:
            if len(self._months) >= _MAX_DAYS:
                self._months.clear()
            known = self._count_in_month(shape, ordinal, ordinal + shape[1], offset, members)
            self._months[key] = known
        return known

    def _count_in_month(
        self, shape: tuple[int, int, int], ordinal: int, stop: int, offset: int, members: Members
    ) -> int:
        total, matching = 0, self._members_by_day(shape, ordinal)
        first_day = date.fromordinal(ordinal).day
        for place in range(stop - ordinal):
            day = ordinal + place - _EPOCH_ORDINAL
            total += self._count_day(matching[first_day + place] & members, self._phases(day, offset))
        return total

    def _members_by_day(self, shape: tuple[int, int, int], ordinal: int) -> tuple[Members, ...]:
        """The crons that match each day of a month; the first is day 0, which no month has."""
        known = self._members.get(shape)
        if known is None:
            month, length, _ = shape
            first = ordinal - date.fromordinal(ordinal).day + 1
            days = [cron.cron.month_days(month, length, first) for cron in self._crons]
            known = tuple(
                sum(1 << place for place, mask in enumerate(days) if mask >> day & 1) for day in range(length + 1)
            )
            self._members[shape] = known
        return known

    # ── one day ──────────────────────────────────────────────────────────────────────────────────────

    def _count_day(self, members: Members, phases: Phases) -> int:
        key = (members, phases)
        known = self._days.get(key)
        if known is None:
            if len(self._days) >= _MAX_DAYS:
                self._days.clear()
            known = self._days[key] = self._day(members, phases).bit_count()
        return known

    def _count_below(self, day: int, time: int, offset: int, members: Members) -> int:
        """Matches of a day before a second of it."""
        ordinal = day + _EPOCH_ORDINAL
        on = date.fromordinal(ordinal)
        length = month_length(on.year, on.month)
        matching = self._members_by_day((on.month, length, (ordinal - on.day + 1) % 7), ordinal)
        whole = self._day(matching[on.day] & members, self._phases(day, offset))
        return (whole & (1 << time) - 1).bit_count()

    def _phases(self, day: int, offset: int) -> Phases:
        midnight = day * _DAY - offset
        return tuple((midnight - interval.offset) % interval.every for interval in self._intervals)

    def _day(self, members: Members, phases: Phases) -> int:
        """The seconds of a day that have a match."""
        key = (members, phases)
        if self._last_day is None or self._last_day[0] != key:
            self._last_day = key, self._seconds_of(members, phases)
        return self._last_day[1]

    def _seconds_of(self, members: Members, phases: Phases) -> int:
        found = 0
        for place, seconds in enumerate(self._seconds):
            if members >> place & 1:
                found |= seconds
        for interval, comb, phase in zip(self._intervals, self._combs, phases, strict=True):
            begins = -phase % interval.every
            if begins < _DAY:
                found |= comb << begins
        return found & _WHOLE_DAY


@lru_cache(maxsize=8)
def unite(crons: tuple[CronSchedule, ...], intervals: tuple[Interval, ...]) -> Union:
    """A herd that reads alike asks together; what a union remembers may take megabytes, so few are kept."""
    return Union(crons, intervals)


def _comb(every: int) -> int:
    """A bit at each multiple of `every` below a day's length."""
    teeth, reach = 1, every
    while reach < _DAY:
        teeth |= teeth << reach
        reach *= 2
    return teeth & _WHOLE_DAY
