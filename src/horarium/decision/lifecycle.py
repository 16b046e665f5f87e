"""What an edit, a pause or a resume does to the position: the past never fires because of any of them."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.decision.plan import Missed
from horarium.instant import Instant
from horarium.recurrence.spec import Spec
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.reason import Reason


@dataclass(frozen=True, slots=True)
class Change:
    """The new position, and the undecided occurrences that the change overtook."""

    position: Position
    superseded: Missed | None = None


def begin(planning: Planning, uid: bytes, *, now: Instant, paused: bool = False) -> Position:
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


def edit(
    old: Planning,
    new: Planning,
    uid: bytes,
    position: Position,
    *,
    now: Instant,
    spec_changed: bool,
    rotation_changed: bool = False,
) -> Change:
    """An edit that leaves the spec equal leaves the plan alone; one that changes it starts a generation."""
    if position.status is Status.BROKEN:
        position = position._replace(status=Status.ACTIVE)
        spec_changed = True  # whatever was broken is mended from now on, not from then
    if rotation_changed or old.rotation != new.rotation:
        position = position._replace(rotation_index=0)
    if not spec_changed:
        return Change(position)
    superseded = _undecided(old.spec, position, now) if position.status is Status.ACTIVE else None
    moved = position._replace(generation=position.generation + 1)
    return Change(replan(new.spec, uid, moved, max(now, position.decided_until)), superseded)


def pause(planning: Planning, position: Position, *, now: Instant) -> Change:
    """Pause a schedule and account for what was due and undecided; `next_due` stays readable."""
    if position.status is Status.PAUSED:
        return Change(position)
    missed = _undecided(planning.spec, position, now)
    paused = position._replace(status=Status.PAUSED, decided_until=max(position.decided_until, now))
    return Change(paused, missed)


def resume(planning: Planning, uid: bytes, position: Position, *, now: Instant) -> Change:
    """Pause is not downtime: the plan goes on from now. What was broken is mended from now on, too."""
    if position.status not in (Status.PAUSED, Status.BROKEN):
        return Change(position)
    overtaken = _undecided(planning.spec, position, now) if position.status is Status.BROKEN else None
    active = position._replace(status=Status.ACTIVE)
    return Change(replan(planning.spec, uid, active, max(now, position.decided_until)), overtaken)


def end_pause(planning: Planning, uid: bytes, position: Position, *, until: Instant) -> Position:
    """As a resume at that instant would, whenever it is written down: an occurrence at `until` itself fires.

    What has come due since then was not in the pause: the catch-up policy decides.
    """
    return resume(planning, uid, position, now=until - 1).position


def delete(planning: Planning, position: Position, *, now: Instant) -> Change:
    """Soft: the row and its history stay; only the clock stops."""
    ticking = position.status in (Status.ACTIVE, Status.BROKEN)
    missed = _undecided(planning.spec, position, now) if ticking else None
    decided = max(position.decided_until, now)
    return Change(position._replace(status=Status.DELETED, next_due=None, decided_until=decided), missed)


def _undecided(spec: Spec, position: Position, now: Instant) -> Missed | None:
    """The occurrences up to now that no tick has decided yet, as one range."""
    first = spec.next_after(position.decided_until)
    if first is None or first > now:
        return None
    last = spec.previous_before(now + 1)
    assert last is not None  # `first` is one
    return Missed(first, last, spec.count(first - 1, last), Reason.SUPERSEDED)
