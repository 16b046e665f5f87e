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
    """Whether nobody else tells at this moment; ours until the transaction ends. On SQLite one writes at a time."""
    if connection.dialect.name != "postgresql":
        return True
    lock = sa.func.pg_try_advisory_xact_lock(sa.literal(_LOCK, sa.BigInteger))
    return bool(connection.execute(sa.select(lock)).scalar_one())


def all_remembered(connection: Connection) -> dict[bytes, HealthStatus]:
    rows = connection.execute(sa.select(unwell_schedules.c.schedule_uid, unwell_schedules.c.status))
    return {row.schedule_uid: HealthStatus(row.status) for row in rows}


def remember(connection: Connection, judged: Iterable[tuple[bytes, str, HealthStatus]], *, now: Instant) -> None:
    """Those of them that need somebody."""
    _ROWS.run(connection, [(uid, ns, status.value, now) for uid, ns, status in judged if status in NEEDS_SOMEBODY])


def forget(connection: Connection, uids: Sequence[bytes]) -> None:
    for start in range(0, len(uids), _AT_ONCE):
        some = list(uids[start : start + _AT_ONCE])
        connection.execute(sa.delete(unwell_schedules).where(unwell_schedules.c.schedule_uid.in_(some)))
