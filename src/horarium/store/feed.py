"""The feed backwards, the newest first, and the names of the schedules that it tells of.

Forwards it is read by `history.feed`; both go by the same cursors, and neither shows a row before all rows
that will ever stand before it are there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.store.history import START, FeedCursor, HistoryRow, select_events, to_events
from horarium.store.tables import history, schedules

_BEYOND = 10**18 - 1  # more rows than there will ever be
_OLDEST_RUNNING = sa.text("pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


def newest(
    connection: Connection, namespace: str | None, *, before: FeedCursor | None = None, limit: int
) -> tuple[list[HistoryRow], FeedCursor | None]:
    """The newest rows, or those before a cursor; and the cursor to go on with, if there may be more."""
    statement = select_events().limit(limit + 1)
    if namespace is not None:
        statement = statement.where(history.c.namespace == namespace)
    rows = to_events(connection, _backwards(connection, statement, before))
    shown = rows[:limit]
    return shown, cursor_of(shown[-1]) if len(rows) > limit else None


def end(connection: Connection) -> FeedCursor:
    """Where a reader begins who wants only what comes from now on."""
    if connection.dialect.name == "postgresql":
        oldest = connection.execute(sa.select(_OLDEST_RUNNING)).scalar_one()
        # Before the first row of the oldest transaction that still runs, whatever numbers its rows have.
        return FeedCursor(int(oldest) - 1, _BEYOND)
    last = connection.execute(sa.select(sa.func.max(history.c.feed_id))).scalar_one()
    return START if last is None else FeedCursor(0, last)


def cursor_of(row: HistoryRow) -> FeedCursor:
    return FeedCursor(row.transaction_id or 0, row.feed_id)


def schedule_ids(connection: Connection, uids: Collection[bytes]) -> dict[bytes, str]:
    """The id of each schedule, deleted ones too."""
    if not uids:
        return {}
    statement = sa.select(schedules.c.schedule_uid, schedules.c.schedule_id).where(
        schedules.c.schedule_uid.in_(list(uids))
    )
    return {row.schedule_uid: row.schedule_id for row in connection.execute(statement)}


def _backwards(connection: Connection, statement: sa.Select[Any], before: FeedCursor | None) -> sa.Select[Any]:
    if connection.dialect.name == "postgresql":
        statement = statement.where(history.c.transaction_id < _OLDEST_RUNNING)
        if before is not None:
            statement = statement.where(
                sa.tuple_(history.c.transaction_id, history.c.feed_id)
                < sa.tuple_(sa.literal(before.transaction_id), sa.literal(before.feed_id))
            )
        return statement.order_by(history.c.transaction_id.desc(), history.c.feed_id.desc())
    statement = statement.where(history.c.transaction_id.is_(None)).order_by(history.c.feed_id.desc())
    return statement if before is None else statement.where(history.c.feed_id < before.feed_id)
