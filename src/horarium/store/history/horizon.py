"""Find the transaction at which a reader of the feed must stop on PostgreSQL.

Every write transaction of Horarium takes the shared advisory lock `WRITERS` before it gets its transaction id, and
keeps the lock until its rows are visible. A transaction that runs without this lock writes no history, so no reader
waits for it: a foreign session, another database of the server, a forgotten prepared transaction.

Nothing is guessed: a transaction is foreign only if the server shows its own lock, none of ours, and says afterwards
that it still runs (a transaction that ends gives up its locks one after the other). Everything else is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import RootTransaction

from horarium.instant import SECOND, Instant
from horarium.store.database.postgres import WRITERS

FEED_LAG_SECONDS = 30
"""From here on health and doctor speak of it: the transactions of Horarium take seconds."""
_LAG_ROWS = 1_000
_XID_RANGE = 2**32

# A snapshot does not name the transaction that takes it.
_SNAPSHOT = """
SELECT pg_snapshot_xmax(s)::text::bigint, ARRAY(
  SELECT pg_snapshot_xip(s)::text::bigint
  UNION ALL SELECT id::text::bigint FROM pg_current_xact_id_if_assigned() id WHERE id IS NOT NULL
) FROM pg_current_snapshot() s
"""
_LOCKS = f"""
SELECT virtualtransaction, pid, locktype = 'transactionid' AS is_own, transactionid::text::bigint AS short_id,
  locktype = 'advisory' AS is_writer
FROM pg_locks
WHERE granted AND (
  (locktype = 'transactionid' AND mode = 'ExclusiveLock')
  OR (locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = {WRITERS >> 32} AND objid::bigint = {WRITERS & 0xFFFFFFFF} AND objsubid = 1)
)
"""
_RUNNING = "SELECT id FROM unnest(%s::bigint[]) id WHERE pg_xact_status(id::text::xid8) = 'in progress'"
_LAG = sa.text(
    "SELECT min(recorded_at) FROM (SELECT recorded_at, transaction_id FROM history ORDER BY feed_id DESC LIMIT :rows) h"
    " WHERE transaction_id >= :stop"
)


class Lock(NamedTuple):
    """A lock of a running transaction.

    `is_own`: every transaction with an id holds one on itself, named by the id's last 32 bits. Any other lock makes
    the holder a writer. `pid` None = the transaction is prepared.
    """

    holder: str
    pid: int | None
    is_own: bool
    short_id: int | None
    is_writer: bool


class Running(NamedTuple):
    """The transactions that ran at a snapshot; every other one before `first_unknown` is over."""

    first_unknown: int
    ids: Sequence[int]


class Lag(NamedTuple):
    """The age of the oldest row that no reader may see yet, and the server processes that hold it back."""

    seconds: float = 0.0
    pids: tuple[int, ...] = ()


# ── decide ───────────────────────────────────────────────────────────────────────────────────────────


def without_our_lock(ids: Iterable[int], locks: Collection[Lock]) -> list[int]:
    """Return those that hold their own lock and no other: they are foreign if they still run afterwards."""
    writers = {lock.holder for lock in locks if not lock.is_own}
    seen = {lock.short_id for lock in locks if lock.is_own and lock.holder not in writers}
    ours = {lock.short_id for lock in locks if lock.is_own and lock.holder in writers}
    return [each for each in ids if each % _XID_RANGE in seen - ours]


def stop_at(running: Running, foreign: Collection[int]) -> int:
    """Return the oldest transaction that a reader must wait for, or the first one that nothing is known about."""
    return min((each for each in running.ids if each not in foreign), default=running.first_unknown)


# ── ask ──────────────────────────────────────────────────────────────────────────────────────────────


def find(connection: Connection) -> int:
    """Return the transaction before which all history is written.

    It is looked up once for a transaction: what was written before it then is so later.
    """
    transaction = connection.get_transaction()
    if transaction is None:
        return _find(connection)
    if transaction not in _found:
        _found[transaction] = _find(connection)
    return _found[transaction]


_found: WeakKeyDictionary[RootTransaction, int] = WeakKeyDictionary()


def _find(connection: Connection) -> int:
    running = _running(connection)
    return stop_at(running, _foreign(connection, running.ids)) if running.ids else running.first_unknown


def lag(connection: Connection, now: Instant) -> Lag:
    """Measure how far the feed is behind what is committed."""
    if connection.dialect.name != "postgresql":
        return Lag()
    running = _running(connection)
    locks = _locks(connection) if running.ids else []
    foreign = _still_running(connection, without_our_lock(running.ids, locks))
    stop = stop_at(running, foreign)
    oldest = connection.execute(_LAG, {"rows": _LAG_ROWS, "stop": stop}).scalar_one()
    if oldest is None:
        return Lag()
    holders = {lock.holder for lock in locks if lock.is_own and lock.short_id == stop % _XID_RANGE}
    pids = {lock.pid for lock in locks if lock.holder in holders and lock.pid is not None}
    return Lag(max(0, now - oldest) / SECOND, tuple(sorted(pids)))


def _running(connection: Connection) -> Running:
    first_unknown, ids = connection.exec_driver_sql(_SNAPSHOT).one()
    return Running(first_unknown, ids)


def _foreign(connection: Connection, ids: Sequence[int]) -> frozenset[int]:
    """Return the foreign ones; what is foreign stays so, and is asked about once."""
    known = _known_foreign.get(connection.engine, frozenset()) & frozenset(ids)
    rest = [each for each in ids if each not in known]
    if rest:
        known |= _still_running(connection, without_our_lock(rest, _locks(connection)))
    _known_foreign[connection.engine] = known
    return known


_known_foreign: WeakKeyDictionary[Engine, frozenset[int]] = WeakKeyDictionary()


def _locks(connection: Connection) -> list[Lock]:
    return [Lock(*row) for row in connection.exec_driver_sql(_LOCKS)]


def _still_running(connection: Connection, ids: Sequence[int]) -> frozenset[int]:
    return frozenset(connection.exec_driver_sql(_RUNNING, (list(ids),)).scalars()) if ids else frozenset()
