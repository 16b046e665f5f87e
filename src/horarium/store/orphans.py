"""What nobody names any more: revisions whose schedule is gone, and planning texts of no revision.

Retention deletes runs and schedules; these stay behind. A few rows are looked at in a snapshot, and what
seems to be nobody's is looked at again by the transaction that deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.store.retention import LIMIT, Found, Swept, delete_some
from horarium.store.runs import everywhere
from horarium.store.tables import history, metadata, plannings, schedule_revisions, schedules

# Every column that names a planning text, read off the tables: one that is forgotten here would lose its texts. The
# revisions first, since they name nearly all and have an index for it.
_NAMES_OF_TEXTS = (
    schedule_revisions.c.planning,
    *(
        table.c.planning
        for table in metadata.sorted_tables
        if table not in (plannings, schedule_revisions)
        and "planning" in table.c
        and isinstance(table.c.planning.type, sa.LargeBinary)
    ),
)


def orphaned_revisions(connection: Connection, *, after: bytes, looks: int) -> Found:
    """The orphans among the next `looks` owners of revisions: neither schedules nor runs, and named by no run."""
    uid = schedule_revisions.c.schedule_uid
    some = sa.select(uid).where(uid > after).group_by(uid).order_by(uid).limit(looks).subquery()
    is_orphan = _is_orphan(connection, some.c.schedule_uid).label("is_orphan")
    rows = connection.execute(sa.select(some.c.schedule_uid, is_orphan).order_by(some.c.schedule_uid)).all()
    ids = tuple(row.schedule_uid for row in rows if row.is_orphan)
    return Found(ids, rows[-1].schedule_uid if len(rows) == looks else None)


def purge_revisions(connection: Connection, uids: Sequence[bytes], *, limit: int = LIMIT) -> Swept:
    uid = schedule_revisions.c.schedule_uid
    deleted = delete_some(
        connection, schedule_revisions, sa.and_(uid.in_(list(uids)), _is_orphan(connection, uid)), limit
    )
    return Swept(deleted, whole=deleted < limit)


def _is_orphan(connection: Connection, uid: sa.ColumnElement[bytes]) -> sa.ColumnElement[bool]:
    """History names revisions, too: they stay as long as it does."""
    of_runs = (column for table in everywhere.tables(connection) for column in (table.c.run_id, table.c.schedule_uid))
    named = (schedules.c.schedule_uid, *of_runs, history.c.schedule_uid)
    return sa.and_(*(~sa.exists().where(column == uid) for column in named))


def unnamed_plannings(connection: Connection, *, after: bytes, looks: int) -> Found:
    """The texts among the next `looks` that no other table names."""
    name = plannings.c.planning
    found = list(connection.execute(sa.select(name).where(name > after).order_by(name).limit(looks)).scalars())
    return Found(tuple(_unnamed(connection, found)), found[-1] if len(found) == looks else None)


def purge_plannings(connection: Connection, names: Sequence[bytes]) -> int:
    """Delete unreferenced texts and return their number.

    A text that exists is not written again when it is needed, so it must not be needed between the look and the
    delete: the lock waits for all transactions that requested a text and blocks new requests meanwhile.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE plannings IN SHARE ROW EXCLUSIVE MODE")
    gone = _unnamed(connection, names)
    return connection.execute(sa.delete(plannings).where(plannings.c.planning.in_(gone))).rowcount if gone else 0


def _unnamed(connection: Connection, names: Sequence[bytes]) -> list[bytes]:
    """One column after the other: most are named by the first, which has an index."""
    left = list(names)
    for column in _NAMES_OF_TEXTS:
        if left:
            named = set(connection.execute(sa.select(column).where(column.in_(left)).distinct()).scalars())
            left = [name for name in left if name not in named]
    return left
