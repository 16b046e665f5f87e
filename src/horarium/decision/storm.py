"""Count the runs that a request would start at once; more than a thousand need a confirmation."""

from __future__ import annotations

from collections.abc import Iterable

from horarium.instant import MINUTE, Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status

MOST_AT_ONCE = 1_000
"""As many as a backfill may ask for, too."""


def released_at_once(planning: Planning, *, active: int, held: int) -> int:
    """Count buffered runs of an active schedule that can start now: the others wait for their turn."""
    limits = [held]
    if planning.overlap.capacity is not None:
        limits.append(planning.overlap.capacity - active)
    if planning.concurrency_key is not None:
        limits.append(planning.concurrency_limit)
    return max(0, min(limits))


def released_by_edit(
    before: Planning | None, after: Planning, status: Status, *, active: int, held: int, paused_until: Instant | None
) -> int:
    """Count the held runs that only the new definition releases; `before` None = the old one could not be read.

    The end of a pause releases them without another request. Until then the old definition releases none, so an edit
    that raises their number counts all of them: several small edits would otherwise need no confirmation.
    """
    paused = status is Status.PAUSED and paused_until is not None
    if not paused and status not in (Status.ACTIVE, Status.FINISHED):
        return 0
    running = 0 if paused else active  # has ended by the end of the pause, or is counted as if it had
    old = 0 if before is None else released_at_once(before, active=running, held=held)
    new = released_at_once(after, active=running, held=held)
    return 0 if new <= old else new if paused else new - old


def due_within_a_minute(positions: Iterable[Position], now: Instant) -> int:
    """Schedules whose next occurrence is about to fire."""
    return sum(
        position.status is Status.ACTIVE and position.next_due is not None and position.next_due <= now + MINUTE
        for position in positions
    )


def must_be_confirmed(runs: int) -> bool:
    return runs > MOST_AT_ONCE
