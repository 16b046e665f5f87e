"""How positions are locked and moved: no other file writes to the table `positions`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, Unpack

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.record import Counts
from horarium.schedule.position import Position, Status
from horarium.store.database.set_wise import Update, select_by_ids
from horarium.store.schedules.rows import LockedPosition, PositionChange
from horarium.store.tables import positions

_LOCKED = f"SELECT {', '.join(LockedPosition._fields)} FROM positions WHERE schedule_uid"
# What a decision moves: the generation stays, and the status is written by its name.
_MOVED = tuple(name for name in Position._fields if name not in ("status", "generation"))
_DECIDED = Update(positions, ("schedule_uid", "status", *_MOVED, *Counts._fields))
_moved_values = attrgetter(*_MOVED)
_COUNTED = Update(
    positions,
    (
        "schedule_uid", "active", "held", "last_completed_at", "last_completed_run_id", "failures_in_a_row",
        "failures_count", "last_error", "last_error_at", "last_dispatch_status", "status", "paused_at", "pause_reason",
        "next_sequence", "decided_until", "empty_in_a_row", "last_state",
    ),
)  # fmt: skip
_counted_values = attrgetter(*_COUNTED.columns)
_ZEROS = dict.fromkeys(("active", "held", "fires_count", "failures_count", "failures_in_a_row", "skipped_count"), 0)


# ── locking ──────────────────────────────────────────────────────────────────────────────────────────


def lock_all(connection: Connection, uids: Collection[bytes]) -> dict[bytes, LockedPosition]:
    """In sorted order, so that two transactions never wait for each other."""
    tail = "ORDER BY schedule_uid FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    found = map(LockedPosition._make, select_by_ids(connection, _LOCKED, sorted(uids), tail))
    return {position.schedule_uid: position for position in found}


def lock(connection: Connection, uid: bytes) -> LockedPosition | None:
    """Ours until the transaction ends."""
    return lock_all(connection, [uid]).get(uid)


def try_lock(connection: Connection, uid: bytes) -> bool:
    """False if another transaction has it, or if it is gone: who has a counter's lock may not wait for a position."""
    free = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid == uid)
    return connection.execute(free.with_for_update(skip_locked=True)).one_or_none() is not None


# ── moving ───────────────────────────────────────────────────────────────────────────────────────────


def first_values(named: Mapping[str, Any], position: Position, change: PositionChange) -> dict[str, Any]:
    """The row of a schedule that begins; `named` are its uid, namespace and id."""
    return _plain({**_ZEROS, "revision": 1, **named, **position._asdict(), **change})


def move(connection: Connection, uid: bytes, **change: Unpack[PositionChange]) -> None:
    """The version of the schedule stays: whoever moves it, too, says so elsewhere."""
    if change:
        own = sa.update(positions).where(positions.c.schedule_uid == uid)
        connection.execute(own.values(_plain(change)))


def stop_all(connection: Connection, namespace: str, limit: int) -> int:
    """Nothing of a namespace that is being removed fires any more; how many were stopped, `limit` at most."""
    uid = positions.c.schedule_uid
    going = sa.select(uid).where(positions.c.namespace == namespace, positions.c.status != Status.DELETED.value)
    uids = list(connection.execute(going.order_by(uid).limit(limit).with_for_update()).scalars())
    if uids:
        stopped = sa.update(positions).where(uid.in_(uids))
        connection.execute(stopped.values(status=Status.DELETED.value, next_due=None, paused_until=None))
    return len(uids)


def save_decided(connection: Connection, decided: Iterable[tuple[bytes, Position, Counts]]) -> None:
    """After decisions, for a whole batch together."""
    rows = [(uid, position.status.value, *_moved_values(position), *counts) for uid, position, counts in decided]
    _DECIDED.run(connection, rows)


def save_counted(connection: Connection, counted: Iterable[LockedPosition]) -> None:
    """After ends of runs, for all of their schedules together."""
    _COUNTED.run(connection, [_counted_values(position) for position in counted])


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drivers differ in what they make of an enum."""
    return {**values, "status": values["status"].value} if "status" in values else {**values}
