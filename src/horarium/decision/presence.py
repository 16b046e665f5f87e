"""The presence of tickers without a break, judged by clock readings that may step.

A presence lasts while two readings are at most the gap apart. A larger distance, in either direction, ends it: the
process was suspended, its machine slept, or the clock was set. The wall clock does not tell these apart, and in each
case no ticker could decide the occurrences in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from horarium.instant import SECOND, Instant

BEAT_SECONDS = 5
"""Between two recorded beats of the tickers."""
GAP_SECONDS = 30
"""The longest distance between two readings of one presence. A restart within it is no downtime."""


@dataclass(frozen=True, slots=True)
class Presence:
    """`at` is the last reading, `since` the first one without a break before it."""

    since: Instant
    at: Instant


def extend(before: Presence | None, now: Instant, gap_seconds: float = GAP_SECONDS) -> Presence:
    """Continue a presence to `now`, or begin another one after a break."""
    if before is None or abs(now - before.at) > gap_seconds * SECOND:
        return Presence(now, now)
    return Presence(min(before.since, now), now)


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
