"""SQL of the feed of all schedules: forwards from a cursor without gaps, or the newest first.

The feed has the events of all schedules and the notices, which stand in the same table without a number of any stream,
so one order holds for all of it.

On PostgreSQL a row gets its number before its commit: number 5 may appear after number 6 has been read. So the
order is by transaction first, and ends before the oldest transaction of Horarium that still runs; all that start later
have greater ids. On SQLite rows are committed in the order of their numbers.

Transaction ids begin again where a dump is restored into another server, or where one continues from a moment in its
past. So history has epochs, one for each server that has written it: a table says with which row each began, and the
first connection to a new server adds one (`horarium_notice_server`). The feed goes through one epoch after the other. A
cursor names its epoch, so that it means the same before and after a restore.

The horizon is the transaction at which a reader must stop. Every write transaction of Horarium takes the shared
advisory lock `WRITERS` before it gets its transaction id, and keeps the lock until its rows are visible. A transaction
without this lock writes no history, so no reader waits for it: a foreign session, another database of the server, a
forgotten prepared transaction. A transaction is foreign only if the server shows its own lock, none of ours, and says
afterwards that it still runs (a transaction that ends gives up its locks one after the other).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import RootTransaction

from horarium.core.document.states import EventType, NoticeType
from horarium.features.history.rows import load_payloads
from horarium.instant import SECOND, Instant
from horarium.platform.database.postgres import WRITERS
from horarium.platform.database.statements import TypedRows, object_from_text, page_within_bytes, sized
from horarium.platform.database.tables import feed_epochs, history, schedules

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


def find_horizon(connection: Connection) -> int:
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


_BEYOND = 10**18 - 1  # more rows than there will ever be
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})(?:-([0-9a-z.]{1,20}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """The last row that a reader of the feed has seen; without an epoch, in the first one."""

    transaction_id: int = 0
    feed_id: int = 0
    epoch: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the rows of its epoch."""
        return self.transaction_id, self.feed_id


START = FeedCursor()


def cursor_text(cursor: FeedCursor) -> str:
    text = f"{cursor.transaction_id}-{cursor.feed_id}"
    return f"{text}-{cursor.epoch}" if cursor.epoch else text


def parse_cursor(text: str) -> FeedCursor | None:
    """None for what is no cursor of ours."""
    found = _CURSOR.fullmatch(text)
    return None if found is None else FeedCursor(int(found[1]), int(found[2]), found[3] or "")


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event of a schedule's audit stream, or a notice, which has no number in any.

    `schedule_uid` is None where no schedule asked for the run.
    """

    feed_id: int
    transaction_id: int | None
    schedule_uid: bytes | None
    sequence: int | None
    namespace: str
    event_type: EventType | NoticeType
    recorded_at: Instant
    run_id: bytes | None
    payload: dict[str, Any]


def _event_type(text: str) -> EventType | NoticeType:
    return NoticeType(text) if text in _NOTICES else EventType(text)


_NOTICES = frozenset(kind.value for kind in NoticeType)
_EVENTS = TypedRows(
    FeedEvent,
    history,
    stand_ins={"event_type": NoticeType.RUN_FINISHED},
    event_type=_event_type,
    payload=object_from_text,
)
_PAYLOAD, _FEED_ID = _EVENTS.place_of("payload"), _EVENTS.place_of("feed_id")


class FeedRow(NamedTuple):
    event: FeedEvent
    cursor: FeedCursor


class Epoch(NamedTuple):
    """`name` is unlike that of any other server's epoch; its rows are numbered from `first` on."""

    name: str
    first: int


_ONLY = (Epoch("", 0),)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


def onward(
    connection: Connection, namespace: str | None, *, after: FeedCursor = START, limit: int
) -> tuple[list[FeedRow], FeedCursor]:
    """Events recorded after a cursor, with the cursor for the next page; None = in all namespaces."""
    epochs = _epochs(connection)
    begin, seen = place(epochs, after)
    rows: list[FeedRow] = []
    for number in range(begin, len(epochs)):
        statement = _of_epoch(connection, epochs, number, namespace).limit(limit - len(rows))
        if number == begin and seen is not None:
            statement = statement.where(_key(connection) > _value(connection, seen))
        found, is_cut = _rows(connection, epochs[number], statement.order_by(*_order(connection)))
        rows += found
        if is_cut or len(rows) == limit:
            break
    return rows, rows[-1].cursor if rows else after


def newest(
    connection: Connection, namespace: str | None, *, before: FeedCursor | None = None, limit: int
) -> tuple[list[FeedRow], FeedCursor | None]:
    """The newest rows, or those before a cursor; and the cursor to go on with, if there may be more."""
    epochs = _epochs(connection)
    begin, seen = (len(epochs) - 1, None) if before is None else place(epochs, before)
    rows: list[FeedRow] = []
    is_cut = False
    for number in range(begin, -1, -1):
        statement = _of_epoch(connection, epochs, number, namespace).limit(limit + 1 - len(rows))
        if number == begin and seen is not None:
            statement = statement.where(_key(connection) < _value(connection, seen))
        backwards = [column.desc() for column in _order(connection)]
        found, is_cut = _rows(connection, epochs[number], statement.order_by(*backwards))
        rows += found
        if is_cut or len(rows) > limit:
            break
    shown = rows[:limit]
    return shown, shown[-1].cursor if is_cut or len(rows) > limit else None


def end(connection: Connection) -> FeedCursor:
    """Where a reader begins who wants only what comes from now on."""
    if connection.dialect.name == "postgresql":
        # Before the first row of the oldest transaction that is waited for, whatever numbers its rows have.
        return FeedCursor(find_horizon(connection) - 1, _BEYOND, _epochs(connection)[-1].name)
    last = connection.execute(sa.select(sa.func.max(history.c.feed_id))).scalar_one()
    return START if last is None else FeedCursor(0, last)


def schedule_ids(connection: Connection, uids: Iterable[bytes | None]) -> dict[bytes, str]:
    """The id of each schedule, deleted ones too."""
    wanted = sorted({uid for uid in uids if uid is not None})
    if not wanted:
        return {}
    statement = sa.select(schedules.c.schedule_uid, schedules.c.schedule_id).where(schedules.c.schedule_uid.in_(wanted))
    return {row.schedule_uid: row.schedule_id for row in connection.execute(statement)}


# ── epochs ───────────────────────────────────────────────────────────────────────────────────────────


def place(epochs: Sequence[Epoch], cursor: FeedCursor) -> tuple[int, FeedCursor | None]:
    """In which epoch a reader goes on, and behind which row of it; None = at its beginning.

    A cursor of an epoch that is not ours comes from a server whose rows were lost, since an older dump took its
    place. What was written instead has numbers that it has used as well: some may be told twice, none is missed.
    """
    for number, epoch in enumerate(epochs):
        if cursor.epoch == epoch.name:
            return number, cursor
    if not cursor.epoch:
        return 0, cursor
    return max((number for number, epoch in enumerate(epochs) if epoch.first <= cursor.feed_id), default=0), None


def _epochs(connection: Connection) -> Sequence[Epoch]:
    """The oldest first; a server that would not say who it is has none, and SQLite needs none."""
    if connection.dialect.name != "postgresql":
        return _ONLY
    rows = connection.execute(sa.select(feed_epochs).order_by(feed_epochs.c.epoch))
    return [Epoch(f"{row.epoch}.{row.server}", row.first_feed_id) for row in rows] or _ONLY


def _of_epoch(connection: Connection, epochs: Sequence[Epoch], number: int, namespace: str | None) -> sa.Select[Any]:
    statement = _EVENTS.select
    if namespace is not None:
        statement = statement.where(history.c.namespace == namespace)
    if connection.dialect.name != "postgresql":
        # SQLite has no transaction ids; saying so lets it use the same index.
        return statement.where(history.c.transaction_id.is_(None))
    if number > 0:
        statement = statement.where(history.c.feed_id >= epochs[number].first)
    if number < len(epochs) - 1:
        # Another server wrote it: all of it was committed when it was dumped.
        return statement.where(history.c.feed_id < epochs[number + 1].first)
    return statement.where(history.c.transaction_id < find_horizon(connection))


def _order(connection: Connection) -> tuple[sa.Column[Any], ...]:
    by_number = (history.c.feed_id,)
    return (history.c.transaction_id, *by_number) if connection.dialect.name == "postgresql" else by_number


def _key(connection: Connection) -> sa.ColumnElement[Any]:
    return sa.tuple_(*_order(connection))


def _value(connection: Connection, cursor: FeedCursor) -> sa.ColumnElement[Any]:
    return sa.tuple_(*(sa.literal(getattr(cursor, column.name)) for column in _order(connection)))


def _rows(connection: Connection, epoch: Epoch, statement: sa.Select[Any]) -> tuple[list[FeedRow], bool]:
    """As many as fit in a page, and whether that cut some off."""
    found = connection.execute(sized(statement, history.c.payload)).all()
    rows, is_cut = page_within_bytes(found, len(found), _PAYLOAD, load_payloads(connection, _FEED_ID))
    events = map(_EVENTS.listed, rows)
    return [FeedRow(row, FeedCursor(row.transaction_id or 0, row.feed_id, epoch.name)) for row in events], is_cut
