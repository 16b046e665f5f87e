"""Which held runs may start when room appears: those of a backfill first, in its order, the others by nominal time.

None starts before its time. A pause holds back what the clock has held, and not a backfill, which is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horarium.decision.facts import Shared
from horarium.instant import SECOND, Instant
from horarium.policy.overlap import Overlap
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status


@dataclass(frozen=True, slots=True)
class HeldRun:
    """Ids are in the order of birth, which is the order that a backfill was asked for."""

    run_id: str
    nominal: Instant
    release_at: Instant | None = None
    backfilled: bool = False

    @property
    def turn(self) -> tuple[int, str, Instant]:
        return (0, self.run_id, 0) if self.backfilled else (1, "", self.nominal)


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """`asked_to_stop_at` is when `cancel_other` asked it to end; None where nobody did."""

    run_id: str
    asked_to_stop_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """`terminate` are runs whose grace to stop by themselves is over; they end with this release."""

    release: tuple[str, ...]
    terminate: tuple[str, ...] = ()


NOTHING = Release(())


def plan_release(
    planning: Planning,
    status: Status,
    held: Sequence[HeldRun],
    active: Sequence[ActiveRun],
    shared: Shared,
    now: Instant,
) -> Release:
    """Asked whenever a run ends, a schedule resumes, or a time that somebody waits for has come."""
    if status is Status.PAUSED:
        held = [run for run in held if run.backfilled]
    if not held:
        return NOTHING
    terminate = tuple(run.run_id for run in active if _grace_is_over(planning.overlap, run, now))
    running = len(active) - len(terminate)
    _give_back_keys(planning, shared, len(terminate))
    capacity = planning.overlap.capacity
    released: list[str] = []
    for run in sorted(held, key=lambda each: each.turn):
        if capacity is not None and running >= capacity:
            break
        if run.backfilled and running and _one_by_one(planning):
            continue
        if run.release_at is not None and run.release_at > now:
            # Later ones of a spread are later still, but others may stand behind it with no time to wait for.
            continue
        if not _take_key(planning, shared):
            break
        released.append(run.run_id)
        running += 1
    return Release(tuple(released), terminate)


def _one_by_one(planning: Planning) -> bool:
    """A schedule without a limit has held a backfill only because the request asked for one after the other."""
    return planning.overlap.capacity is None and planning.concurrency_key is None


def _grace_is_over(overlap: Overlap, run: ActiveRun, now: Instant) -> bool:
    """Whoever asked it to stop - the policy, a caller's own policy, a person - somebody waits for its place."""
    return run.asked_to_stop_at is not None and now - run.asked_to_stop_at >= overlap.cancel_grace_seconds * SECOND


def _give_back_keys(planning: Planning, shared: Shared, count: int) -> None:
    key = planning.concurrency_key
    if key is not None and count:
        shared.active_by_key[key] = max(0, shared.active_by_key.get(key, 0) - count)


def _take_key(planning: Planning, shared: Shared) -> bool:
    key = planning.concurrency_key
    if key is None:
        return True
    taken = shared.active_by_key.get(key, 0)
    if taken >= planning.concurrency_limit:
        return False
    shared.active_by_key[key] = taken + 1
    return True
