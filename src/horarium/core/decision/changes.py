"""Changes of a schedule outside of a tick: an edit, a pause, a resume, the end of a run, and the release of buffered
runs.

The past never fires because of an edit, a pause or a resume. Failed runs in a row are counted, and enough of them
pause the schedule.

When there is room, the buffered runs of a backfill start first, in its order, then the others by nominal time. None
starts before its time. A pause holds back what the clock has buffered, and not a backfill, which is explicit. A
request that would start more than a thousand runs at once needs a confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from horarium.core.decision.facts import Missed, SharedFacts
from horarium.core.document.planning import Planning
from horarium.core.document.states import UNSUCCESSFUL, Position, Reason, RunState, Status
from horarium.core.policy.queue import Overlap
from horarium.core.recurrence.spec import Spec
from horarium.instant import MINUTE, SECOND, Instant

# ── Position ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PositionEdit:
    """The new position, and the undecided occurrences that the change overtook."""

    position: Position
    superseded: Missed | None = None


def begin_position(planning: Planning, uid: bytes, *, now: Instant, paused: bool = False) -> Position:
    """The position of a new schedule: everything up to now counts as decided."""
    status = Status.PAUSED if paused else Status.ACTIVE
    return replan(planning.spec, uid, Position(decided_until=now, next_due=None, status=status), now)


def replan(spec: Spec, uid: bytes, position: Position, after: Instant) -> Position:
    """Plan strictly after an instant; a schedule without a future is finished."""
    nominal = spec.next_after(after)
    next_due = None if nominal is None else spec.due(uid, nominal)
    status = position.status
    if status is Status.ACTIVE and nominal is None:
        status = Status.FINISHED
    elif status is Status.FINISHED and nominal is not None:
        status = Status.ACTIVE
    return position._replace(decided_until=after, next_due=next_due, status=status)


def edit_position(
    old: Planning,
    new: Planning,
    uid: bytes,
    position: Position,
    *,
    now: Instant,
    spec_changed: bool,
    rotation_changed: bool = False,
) -> PositionEdit:
    """An edit that leaves the spec equal leaves the plan alone; one that changes it starts a generation."""
    if position.status is Status.BROKEN:
        position = position._replace(status=Status.ACTIVE)
        spec_changed = True  # whatever was broken is mended from now on, not from then
    if rotation_changed or old.rotation != new.rotation:
        position = position._replace(rotation_index=0)
    if not spec_changed:
        return PositionEdit(position)
    superseded = _undecided(old.spec, position, now) if position.status is Status.ACTIVE else None
    moved = position._replace(generation=position.generation + 1)
    return PositionEdit(replan(new.spec, uid, moved, max(now, position.decided_until)), superseded)


def pause_position(planning: Planning, position: Position, *, now: Instant) -> PositionEdit:
    """Pause a schedule and account for what was due and undecided; `next_due` stays readable."""
    if position.status is Status.PAUSED:
        return PositionEdit(position)
    missed = _undecided(planning.spec, position, now)
    paused = position._replace(status=Status.PAUSED, decided_until=max(position.decided_until, now))
    return PositionEdit(paused, missed)


def resume_position(planning: Planning, uid: bytes, position: Position, *, now: Instant) -> PositionEdit:
    """Pause is not downtime: the plan goes on from now. What was broken is mended from now on, too."""
    if position.status not in (Status.PAUSED, Status.BROKEN):
        return PositionEdit(position)
    overtaken = _undecided(planning.spec, position, now) if position.status is Status.BROKEN else None
    active = position._replace(status=Status.ACTIVE)
    return PositionEdit(replan(planning.spec, uid, active, max(now, position.decided_until)), overtaken)


def end_pause(planning: Planning, uid: bytes, position: Position, *, until: Instant) -> Position:
    """As a resume at that instant would, whenever it is written down: an occurrence at `until` itself fires.

    What has come due since then was not in the pause: the catch-up policy decides.
    """
    return resume_position(planning, uid, position, now=until - 1).position


def delete_position(planning: Planning, position: Position, *, now: Instant) -> PositionEdit:
    """Soft: the row and its history stay; only the clock stops."""
    ticking = position.status in (Status.ACTIVE, Status.BROKEN)
    missed = _undecided(planning.spec, position, now) if ticking else None
    decided = max(position.decided_until, now)
    return PositionEdit(position._replace(status=Status.DELETED, next_due=None, decided_until=decided), missed)


def _undecided(spec: Spec, position: Position, now: Instant) -> Missed | None:
    """The occurrences up to now that no tick has decided yet, as one range."""
    first = spec.next_after(position.decided_until)
    if first is None or first > now:
        return None
    last = spec.previous_before(now + 1)
    assert last is not None  # `first` is one
    return Missed(first, last, spec.count(first - 1, last), Reason.SUPERSEDED)


# ── Ends of runs ──────────────────────────────────────────────────────────────────────────────────────


# Ended by somebody's wish: it neither breaks a row of failures nor lengthens it.
_NEUTRAL = frozenset({RunState.CANCELLED, RunState.TERMINATED, RunState.REJECTED, RunState.EXPIRED, RunState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Ending:
    failed: bool
    failures_in_a_row: int
    pause_reason: str | None = None


def plan_ending(planning: Planning, status: Status, failures_in_a_row: int, state: RunState) -> Ending:
    if state in _NEUTRAL:
        return Ending(failed=False, failures_in_a_row=failures_in_a_row)
    if state not in UNSUCCESSFUL:
        return Ending(failed=False, failures_in_a_row=0)
    row = failures_in_a_row + 1
    limit = planning.pause_on_failure
    if limit is not None and row >= limit and status in (Status.ACTIVE, Status.FINISHED):
        return Ending(True, row, f"paused after {row} failed runs in a row")
    return Ending(failed=True, failures_in_a_row=row)


# ── Release of buffered runs ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BufferedRun:
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


NO_RELEASE = Release(())


def plan_release(
    planning: Planning,
    status: Status,
    held: Sequence[BufferedRun],
    active: Sequence[ActiveRun],
    shared: SharedFacts,
    now: Instant,
) -> Release:
    """Asked whenever a run ends, a schedule resumes, or a time that somebody waits for has come."""
    if status is Status.PAUSED:
        held = [run for run in held if run.backfilled]
    if not held:
        return NO_RELEASE
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


def _give_back_keys(planning: Planning, shared: SharedFacts, count: int) -> None:
    key = planning.concurrency_key
    if key is not None and count:
        shared.active_by_key[key] = max(0, shared.active_by_key.get(key, 0) - count)


def _take_key(planning: Planning, shared: SharedFacts) -> bool:
    key = planning.concurrency_key
    if key is None:
        return True
    taken = shared.active_by_key.get(key, 0)
    if taken >= planning.concurrency_limit:
        return False
    shared.active_by_key[key] = taken + 1
    return True


# ── Confirmation ──────────────────────────────────────────────────────────────────────────────────────


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
