"""How what is counted is counted anew: runs of a schedule, holders of a key, and plans that have got lost.

Every count moves in the transaction that moves the runs, so these find nothing, unless a row was changed
by hand or restored, or a fault of ours slipped through. What is found is looked at again under the lock.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision import lifecycle
from horarium.instant import Instant
from horarium.schedule.position import Position, Status
from horarium.schedule.run import RunState
from horarium.store.counters import lock_counters
from horarium.store.runs.states import OPEN_ROOT
from horarium.store.schedules import positions
from horarium.store.schedules.broken import park
from horarium.store.schedules.due import Plannings
from horarium.store.tables import counters, runs
from horarium.store.tables import positions as table

_HELD = RunState.HELD.value
_OPEN_ROOT = sa.text(OPEN_ROOT)
_IS_HELD = sa.case((runs.c.state == _HELD, 1), else_=0)
# As `counters.key_owner` writes it.
_key_of_run = sa.literal("key:") + runs.c.namespace + " " + runs.c.concurrency_key


@dataclass(frozen=True, slots=True)
class Count:
    """Root runs of a schedule that have not ended."""

    active: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Recounted:
    schedule_uid: bytes
    namespace: str
    schedule_id: str
    before: Count
    after: Count


@dataclass(frozen=True, slots=True)
class Replanned:
    """A schedule that had lost its plan, and the status that it has now."""

    namespace: str
    schedule_id: str
    status: Status


@dataclass(frozen=True, slots=True)
class Miscounted:
    """`after` is where the next look begins, None = this was the last."""

    uids: tuple[bytes, ...]
    after: bytes | None


# ── runs of a schedule ───────────────────────────────────────────────────────────────────────────────


def miscounted(connection: Connection, *, after: bytes, looks: int) -> Miscounted:
    """The schedules among the next `looks` whose position has wrong counts of runs."""
    uid = table.c.schedule_uid
    columns = sa.select(uid, table.c.active, table.c.held)
    rows = connection.execute(columns.where(uid > after).order_by(uid).limit(looks)).all()
    if not rows:
        return Miscounted((), None)
    inside = sa.and_(runs.c.schedule_uid > after, runs.c.schedule_uid <= rows[-1].schedule_uid)
    counted = _count(connection, inside)
    wrong = tuple(
        row.schedule_uid for row in rows if Count(row.active, row.held) != counted.get(row.schedule_uid, Count())
    )
    return Miscounted(wrong, rows[-1].schedule_uid if len(rows) == looks else None)


def recount(connection: Connection, uid: bytes) -> Recounted | None:
    """None if the counts are right, now that nobody can move them."""
    position = positions.lock(connection, uid)
    if position is None:
        return None
    before = Count(position.active, position.held)
    after = count_open(connection, uid)
    if before == after:
        return None
    positions.move(connection, uid, active=after.active, held=after.held)
    return Recounted(uid, position.namespace, position.schedule_id, before, after)


def count_open(connection: Connection, uid: bytes) -> Count:
    """Correct counts for the position of a schedule."""
    return _count(connection, runs.c.schedule_uid == uid).get(uid, Count())


def _count(connection: Connection, which: sa.ColumnElement[bool]) -> dict[bytes, Count]:
    rows = connection.execute(
        sa.select(runs.c.schedule_uid, sa.func.count().label("open"), sa.func.sum(_IS_HELD).label("held"))
        .where(_OPEN_ROOT, which)
        .group_by(runs.c.schedule_uid)
    )
    return {row.schedule_uid: Count(row.open - int(row.held), int(row.held)) for row in rows}


# ── holders of a key ─────────────────────────────────────────────────────────────────────────────────

_HOLDS_KEY = sa.and_(
    _OPEN_ROOT, runs.c.state != _HELD, runs.c.schedule_uid.is_not(None), runs.c.concurrency_key.is_not(None)
)


def miscounted_keys(connection: Connection) -> list[str]:
    """Owners of the counters that differ from the runs that hold the key."""
    return sorted(key_differences(connection))


def key_differences(connection: Connection) -> dict[str, tuple[int, int]]:
    """By owner of a counter what it says and how many hold the key, where that differs.

    Costs as much as runs are open.
    """
    holders = (
        sa.select(_key_of_run.label("owner"), sa.func.count().label("holders")).where(_HOLDS_KEY).group_by(_key_of_run)
    )
    there = {row.owner: row.holders for row in connection.execute(holders)}
    rows = connection.execute(sa.select(counters.c.owner, counters.c.value).where(counters.c.kind == "key"))
    said = {row.owner: row.value for row in rows}
    both = {owner: (said.get(owner, 0), there.get(owner, 0)) for owner in there.keys() | said.keys()}
    return {owner: numbers for owner, numbers in both.items() if numbers[0] != numbers[1]}


def recount_key(connection: Connection, owner: str) -> tuple[int, int] | None:
    """Correct the counter; return its old and new values, or None if it was right.

    The counter is locked. A transaction that changes a holder either adds its part later to this count, or has
    committed and is counted.
    """
    counter = ("key", owner, 0)
    before = lock_counters(connection, [counter])[counter]
    holders = sa.select(sa.func.count()).select_from(runs).where(_HOLDS_KEY, _key_of_run == owner)
    after = int(connection.execute(holders).scalar_one())
    if before == after:
        return None
    connection.execute(
        sa.update(counters).where(counters.c.kind == "key", counters.c.owner == owner).values(value=after)
    )
    return before, after


# ── lost plans ───────────────────────────────────────────────────────────────────────────────────────


def unplanned(connection: Connection, limit: int) -> list[bytes]:
    """Active schedules that no tick will ever see."""
    statement = sa.select(table.c.schedule_uid).where(table.c.status == Status.ACTIVE.value, table.c.next_due.is_(None))
    return list(connection.execute(statement.limit(limit)).scalars())


def plan_again(connection: Connection, known: Plannings, uid: bytes, now: Instant) -> Replanned | None:
    """Plan on from the last decision, so that nothing is dropped.

    None if there is nothing to mend. What cannot be planned is set aside as broken.
    """
    row = positions.lock(connection, uid)
    if row is None or row.status != Status.ACTIVE.value or row.next_due is not None:
        return None
    planning = known.load(connection, [row.planning])[row.planning]
    if isinstance(planning, Exception):
        park(connection, uid, error=str(planning), error_class=type(planning).__name__, now=now)
        return Replanned(row.namespace, row.schedule_id, Status.BROKEN)
    position = Position(row.decided_until, None, Status.ACTIVE, row.generation)
    planned = lifecycle.replan(planning.spec, uid, position, row.decided_until)
    positions.move(connection, uid, status=planned.status, next_due=planned.next_due)
    return Replanned(row.namespace, row.schedule_id, planned.status)
