"""When a cron expression fires in a zone: wall-clock matches turned into instants, clock changes included.

Vixie's rule. A job with a wildcard minute or hour follows real time: it fires at every instant whose
wall clock matches. A job whose minute and hour are fixed fires once for each wall time that it names:
inside a gap at the gap's end, inside a repeated hour at the first pass, unless the user chose otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from horarium.recurrence.cron import Cron
from horarium.recurrence.zone import EARLIEST, LATEST, Segment, Zone

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
