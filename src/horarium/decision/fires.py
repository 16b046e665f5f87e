"""Which fires of the next seven days a change brings and takes away, whatever guards will say to them."""

from __future__ import annotations

from dataclasses import replace

from horarium.instant import DAY, Instant
from horarium.recurrence.spec import Spec

HORIZON = 7 * DAY


def fires_moved(before: Spec | None, after: Spec | None, *, now: Instant) -> tuple[int, int]:
    """How many are added and removed; None = nothing fires. By arithmetic: a spec may fire every second."""
    until = now + HORIZON
    old = 0 if before is None else before.count(now, until)
    new = 0 if after is None else after.count(now, until)
    both = 0 if before is None or after is None else _in_both(before, after, now, until)
    return new - both, old - both


def _in_both(one: Spec, other: Spec, now: Instant, until: Instant) -> int:
    """Of two sets: those of the one and those of the other, less those of the two together."""
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
