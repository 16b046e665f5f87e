"""The feed of all schedules, forwards from a cursor or the newest first; whoever goes on from a cursor misses nothing.

It is made of the audit streams of all schedules, and of notices, which stand in the same table without a number of
any stream: so one order holds for all of it.

On PostgreSQL a row gets its number before its commit: number 5 may appear after number 6 has been read. So the
order is by transaction first, and ends before the oldest transaction of Horarium that still runs; all that start later
have greater ids. Foreign transactions delay no reader (`horizon.py`). On SQLite rows are committed in the order of
their numbers.

Transaction ids begin again where a dump is restored into another server, or where one goes on from a moment in its
past. So history has epochs, one for each server that has written it: a table says with which row each began, and
the first connection to a new server adds one (`horarium_notice_server`). The feed goes through one
epoch after the other. A cursor names its epoch, so that it means the same before and after a restore.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import EventType, NoticeType
from horarium.store.database.json_text import object_from_text
from horarium.store.database.page_bytes import page, sized
from horarium.store.database.typed_rows import TypedRows
from horarium.store.history import horizon
from horarium.store.history.events import load_payloads
from horarium.store.tables import feed_epochs, history, schedules

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
        return FeedCursor(horizon.find(connection) - 1, _BEYOND, _epochs(connection)[-1].name)
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
    return statement.where(history.c.transaction_id < horizon.find(connection))


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
    rows, is_cut = page(found, len(found), _PAYLOAD, load_payloads(connection, _FEED_ID))
    events = map(_EVENTS.listed, rows)
    return [FeedRow(row, FeedCursor(row.transaction_id or 0, row.feed_id, epoch.name)) for row in events], is_cut
