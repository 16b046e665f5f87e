"""Which schedules of a namespace may have an occurrence in a window that lies ahead: as many as can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import LAST, MILLISECOND, Instant
from horarium.schedule.position import Position, Status
from horarium.store.schedules.signs import ACTIVE
from horarium.store.tables import plannings, positions

# Of variables in one statement SQLite takes 32,766, and older ones 999.
_AT_ONCE = 900


class Candidate(NamedTuple):
    """As it is read, since most of very many are looked at once and no more. `planning` is the hash of its planning
    text, `status` a word of `Status`.
    """

    schedule_uid: bytes
    schedule_id: str
    planning: bytes
    active: int
    held: int
    paused_until: Instant | None
    decided_until: Instant
    next_due: Instant | None
    status: str
    generation: int
    runs_born: int
    rotation_index: int

    @property
    def position(self) -> Position:
        kept = (self.generation, self.runs_born, self.rotation_index)
        return Position(self.decided_until, self.next_due, Status(self.status), *kept)


_COLUMNS = tuple(positions.c[name] for name in Candidate._fields)


def active(connection: Connection, namespace: str, end: Instant, limit: int) -> list[Candidate]:
    """Those that are due before `end`: whoever is due first first, and by id where they are due at one instant."""
    # As text: PostgreSQL takes a partial index only for a condition that it can read.
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace, sa.text("status = 'active'"))
    due = mine.where(positions.c.next_due < end).order_by(
        positions.c.namespace, positions.c.next_due, positions.c.schedule_id
    )
    return list(_read(connection, due.limit(limit)))


def at_rest(connection: Connection, namespace: str, limit: int) -> list[Candidate]:
    """The paused and the broken, in no order."""
    mine = sa.select(*_COLUMNS).where(
        positions.c.namespace == namespace,
        sa.text("status <> 'active' AND status <> 'deleted'"),
        positions.c.status.in_(("paused", "broken")),
    )
    return list(_read(connection, mine.limit(limit)))


def longest_jitter(connection: Connection) -> Instant:
    """Longest jitter of all plannings of all namespaces. An unreadable text has none."""
    # A quote inside of somebody's text has a backslash before it: this can only be the member.
    name = '"jitter_ms":'
    told = (
        sa.cast(sa.func.substring(plannings.c.text, f"{name}([0-9]{{1,15}})"), sa.BigInteger)
        if connection.dialect.name == "postgresql"
        else sa.cast(
            sa.func.substr(plannings.c.text, sa.func.instr(plannings.c.text, name) + len(name), 18), sa.Integer
        )
    )
    found = connection.execute(sa.select(sa.func.max(told)).where(plannings.c.text.not_like(f"%{name}0,%")))
    return MILLISECOND * (found.scalar() or 0)


def among(connection: Connection, namespace: str, end: Instant, uids: Sequence[bytes]) -> list[Candidate]:
    """Candidates among these schedules, in no order."""
    found: list[Candidate] = []
    due = sa.and_(ACTIVE, positions.c.next_due < end)
    at_rest = positions.c.status.in_((Status.PAUSED.value, Status.BROKEN.value))
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace, sa.or_(due, at_rest))
    for start in range(0, len(uids), _AT_ONCE):
        own = positions.c.schedule_uid.in_(uids[start : start + _AT_ONCE])
        found += _read(connection, mine.where(own))
    return found


def _read(connection: Connection, statement: sa.Select[Any]) -> Iterator[Candidate]:
    """Leave out positions with numbers that are no instants; a list of schedules shows them as unreadable."""
    return filter(_is_readable, map(Candidate._make, connection.execute(statement).all()))


def _is_readable(each: Candidate) -> bool:
    try:
        numbers = each.active + each.held + each.generation + each.runs_born + each.rotation_index
        return max(numbers, each.decided_until, each.paused_until or 0) <= LAST
    except TypeError:  # SQLite holds text in columns of numbers too
        return False
