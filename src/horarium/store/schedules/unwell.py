"""Which schedules were told to need somebody, so that a change is told once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.health_status import NEEDS_SOMEBODY, HealthStatus
from horarium.instant import Instant
from horarium.store.database.set_wise import Insert
from horarium.store.tables import unwell_schedules

# "unwell" in ASCII: the lock of whoever tells.
_LOCK = int.from_bytes(b"unwell", "big")
_AT_ONCE = 500
_ROWS = Insert(unwell_schedules, ("schedule_uid", "namespace", "status", "since"))


def claim(connection: Connection) -> bool:
    """Claim the notification until the transaction ends; False if it is taken. SQLite has a single writer."""
    if connection.dialect.name != "postgresql":
        return True
    lock = sa.func.pg_try_advisory_xact_lock(sa.literal(_LOCK, sa.BigInteger))
    return bool(connection.execute(sa.select(lock)).scalar_one())


def page(connection: Connection, *, after: bytes, limit: int) -> dict[bytes, HealthStatus]:
    """The next ones in the order of their births."""
    uid = unwell_schedules.c.schedule_uid
    return _read(connection, _REMEMBERED.where(uid > after).order_by(uid).limit(limit))


def remembered(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, HealthStatus]:
    """Those of them that were told to need somebody."""
    found: dict[bytes, HealthStatus] = {}
    for start in range(0, len(uids), _AT_ONCE):
        some = list(uids[start : start + _AT_ONCE])
        found |= _read(connection, _REMEMBERED.where(unwell_schedules.c.schedule_uid.in_(some)))
    return found


_REMEMBERED = sa.select(unwell_schedules.c.schedule_uid, unwell_schedules.c.status)


def _read(connection: Connection, statement: sa.Select[tuple[bytes, str]]) -> dict[bytes, HealthStatus]:
    return {row.schedule_uid: HealthStatus(row.status) for row in connection.execute(statement)}


def remember(connection: Connection, judged: Iterable[tuple[bytes, str, HealthStatus]], *, now: Instant) -> None:
    """Those of them that need somebody."""
    _ROWS.run(connection, [(uid, ns, status.value, now) for uid, ns, status in judged if status in NEEDS_SOMEBODY])


def forget(connection: Connection, uids: Sequence[bytes]) -> None:
    for start in range(0, len(uids), _AT_ONCE):
        some = list(uids[start : start + _AT_ONCE])
        connection.execute(sa.delete(unwell_schedules).where(unwell_schedules.c.schedule_uid.in_(some)))
