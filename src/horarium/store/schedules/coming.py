"""Which schedules of a namespace may have an occurrence in a window that lies ahead: as many as can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.position import Position, Status
from horarium.store.schedules.signs import ACTIVE
from horarium.store.tables import positions

_COLUMNS = (
    positions.c.schedule_uid,
    positions.c.schedule_id,
    positions.c.planning,
    positions.c.active,
    positions.c.held,
    positions.c.paused_until,
    *(positions.c[name] for name in Position._fields),
)
_OWN = 6
# Of variables in one statement SQLite takes 32,766, and older ones 999.
_AT_ONCE = 900


@dataclass(frozen=True, slots=True)
class Candidate:
    """`planning` is the hash of its planning text."""

    schedule_uid: bytes
    schedule_id: str
    planning: bytes
    active: int
    held: int
    paused_until: Instant | None
    position: Position


def candidates(connection: Connection, namespace: str, end: Instant, limit: int) -> list[Candidate]:
    """Active ones that are due before `end`, those that are due first first; then the paused and the broken."""
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace)
    # As text: PostgreSQL takes a partial index only for a condition that it can read.
    active = mine.where(sa.text("status = 'active'"), positions.c.next_due < end).order_by(
        positions.c.namespace, positions.c.next_due
    )
    found = list(_read(connection, active.limit(limit)))
    at_rest = mine.where(
        sa.text("status <> 'active' AND status <> 'deleted'"), positions.c.status.in_(("paused", "broken"))
    )
    return [*found, *_read(connection, at_rest.limit(limit - len(found)))]


def among(connection: Connection, namespace: str, end: Instant, uids: Sequence[bytes]) -> list[Candidate]:
    """Of these schedules the same, in no order."""
    found: list[Candidate] = []
    due = sa.and_(ACTIVE, positions.c.next_due < end)
    at_rest = positions.c.status.in_((Status.PAUSED.value, Status.BROKEN.value))
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace, sa.or_(due, at_rest))
    for start in range(0, len(uids), _AT_ONCE):
        own = positions.c.schedule_uid.in_(uids[start : start + _AT_ONCE])
        found += _read(connection, mine.where(own))
    return found


def _read(connection: Connection, statement: sa.Select[Any]) -> Iterator[Candidate]:
    for row in connection.execute(statement):
        position = Position._make(row[_OWN:])
        uid, schedule_id, planning, active, held, paused_until = row[:_OWN]
        known = position._replace(status=Status(position.status))
        yield Candidate(uid, schedule_id, planning, active, held, paused_until, known)
