"""The presence of tickers without a break, judged by clock readings that may step.

A presence lasts while two readings are at most the gap apart. A larger distance, in either direction, ends it: the
process was suspended, its machine slept, or the clock was set. The wall clock does not tell these apart, and in each
case no ticker could decide the occurrences in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from horarium.instant import SECOND, Instant

BEAT_SECONDS = 5
"""Between two recorded beats of the tickers."""
GAP_SECONDS = 30
"""The longest distance between two readings of one presence; `Breaks` are the shorter ones that matter."""
_REMEMBERED_SECONDS = 3_600
_MOST_BREAKS = 20
_BUSY_SHARE = 0.25
"""Share of a processor that a busy process takes at least, also on a crowded machine."""

Break = tuple[Instant, Instant]
"""The last reading before a time without a ticker, and the first one after it."""


@dataclass(frozen=True, slots=True)
class Presence:
    """`at` is the last reading, `since` the first one without a break before it."""

    since: Instant
    at: Instant
    breaks: tuple[Break, ...] = ()

    def covers(self, found: Break) -> bool:
        """Return whether this presence shows that a ticker was there during a break that another one recorded."""
        begin, end = found
        return self.since <= begin and end <= self.at and not any(b < end and begin < e for b, e in self.breaks)


def extend(
    before: Presence | None, now: Instant, gap_seconds: float = GAP_SECONDS, worked_seconds: float = 0.0
) -> Presence:
    """Continue a presence to `now`, or begin another one after a break.

    `worked_seconds`: processor time that the process took since the last reading. One that worked was slow, not away.
    """
    if before is None or abs(now - before.at) > gap_seconds * SECOND:
        return Presence(now, now)
    breaks = before.breaks
    if now - before.at > max(BEAT_SECONDS, worked_seconds / _BUSY_SHARE) * SECOND:
        breaks = (*breaks, (before.at, now))[-_MOST_BREAKS:]
    return Presence(min(before.since, now), now, breaks)


def short_breaks(
    recorded_at: Instant | None, noted: object, own: Presence, *, accompanied: bool = False
) -> tuple[Break, ...]:
    """Return the breaks of the last hour that are shorter than the gap, as far as this process and the record tell.

    `noted` is what an earlier beat found. A process that begins sees a break since the last record; one that was there
    meanwhile takes it back with its next beat. Where another ticker seems to be alive (`accompanied`), this process
    adds none: what the other was too slow to decide was not missed.
    """
    if recorded_at is None:
        return ()
    found = [each for each in _read_breaks(noted) if not own.covers(each)]
    for begin, end in () if accompanied else ((recorded_at, own.since), *own.breaks):
        if recorded_at < end:
            found.append((max(begin, recorded_at), end))
    oldest = own.at - _REMEMBERED_SECONDS * SECOND
    kept = {each for each in found if oldest < each[1] <= own.at}  # later ones are from a clock that was ahead
    return tuple(sorted(kept))[-_MOST_BREAKS:]


def alive_since(since: Instant | None, breaks: Iterable[Break], grace_seconds: int) -> Instant | None:
    """Return since when a ticker has been there, not counting breaks that are no longer than a schedule's grace."""
    if since is None:
        return None
    return max([since, *(end for begin, end in breaks if end - begin > grace_seconds * SECOND)])


def _read_breaks(noted: object) -> Iterator[Break]:
    for each in noted if isinstance(noted, list) else ():
        match each:
            case [int(begin), int(end)]:
                yield begin, end
            case _:  # damaged
                pass


def join(
    recorded: Presence | None, now: Instant, own_since: Instant | None = None, gap_seconds: float = GAP_SECONDS
) -> Presence:
    """Join what is recorded for all processes with the presence of one of them, which lasts until `now`.

    `own_since`: that process kept count in its memory, and was present from then on although it could not write. A
    record that lies ahead of `now` by more than the gap was written by a clock that ran ahead, and proves nothing.
    """
    begin, gap = now if own_since is None else own_since, gap_seconds * SECOND
    if recorded is None or recorded.at - now > gap or begin - recorded.at > gap:
        return Presence(begin, now)
    since = recorded.since if own_since is None else min(recorded.since, own_since)
    return Presence(since, max(recorded.at, now))


def clock_was_ahead(recorded_at: Instant | None, now: Instant, gap_seconds: float = GAP_SECONDS) -> bool:
    """Return whether the record was written by a clock that ran ahead of the present one."""
    return recorded_at is not None and recorded_at - now > gap_seconds * SECOND


def decided_ahead_until(recorded_at: Instant | None, noted: object, now: Instant) -> Instant | None:
    """Return up to when occurrences are already decided because the clock was ahead; None = it was not.

    `noted` is what an earlier beat found. The last decision may be one beat younger than the last record.
    """
    ends = [noted] if isinstance(noted, int) and not isinstance(noted, bool) else []
    if recorded_at is not None and clock_was_ahead(recorded_at, now):
        ends.append(recorded_at + BEAT_SECONDS * SECOND)
    return max((end for end in ends if end > now), default=None)
