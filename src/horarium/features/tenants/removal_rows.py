"""SQL that removes a namespace with all its rows, and rows without an owner.

Nothing of a removed namespace starts, its open runs end, then its rows are deleted. A step is one transaction of
bounded size; the next continues where it ended. The schema tells which tables hold rows of a namespace, so that none
is forgotten.

Rows without an owner are revisions whose schedule is gone and planning texts of no revision; retention leaves them
behind. A few are looked at in a snapshot, and again in the transaction that deletes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.states import OPEN
from horarium.core.lifecycle.outcome import Terminated
from horarium.features.runs.retention_rows import LIMIT, Found, Swept, delete_runs, delete_some
from horarium.features.runs.transition_rows import ReportedEvent, record_events
from horarium.features.schedules import write_rows
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_states import OPEN_ROOT, sql_list
from horarium.platform.database.statements import assignee_owner, key_owner, schedule_owner
from horarium.platform.database.tables import (
    audit,
    audit_heads,
    checkpoints,
    counters,
    history,
    metadata,
    namespaces,
    plannings,
    runs,
    schedule_attributes,
    schedule_revisions,
    schedules,
    tokens,
)
from horarium.platform.database.tables import positions as positions_table

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
    of_runs = (column for table in run_archive.tables(connection) for column in (table.c.run_id, table.c.schedule_uid))
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


# Runs that are ended, and runs or schedules that are deleted with what hangs on them, in one transaction.
_ENDED = 100
_GROUP = 20
_GONE = Terminated("the namespace was deleted", "namespace_deleted")
_OPEN = sa.text(f"state IN {sql_list(OPEN)}")
# What was done in it stays on record, for the admins of the house.
_RETAINED = (namespaces, audit, audit_heads)
# Those that are left when schedules and runs are gone.
_OTHERS = [table for table in metadata.sorted_tables if "namespace" in table.c and table not in _RETAINED]


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Live schedules and open runs of a namespace."""

    schedules: int
    open_runs: int


class RemovalStep(Enum):
    MORE = auto()
    WAIT = auto()  # somebody else holds what is to go
    DONE = auto()


def lock_for_removal(connection: Connection, namespace: str) -> bool:
    """Ours until the transaction ends; False if there is none of that name."""
    mine = sa.select(namespaces.c.namespace).where(
        namespaces.c.namespace == namespace, namespaces.c.deleted_at.is_(None)
    )
    return connection.execute(mine.with_for_update()).one_or_none() is not None


def count_live_rows(connection: Connection, namespace: str) -> LiveRows:
    live = sa.select(sa.func.count()).select_from(schedules)
    live = live.where(schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    open_roots = sa.select(sa.func.count()).select_from(runs).where(runs.c.namespace == namespace, sa.text(OPEN_ROOT))
    return LiveRows(connection.execute(live).scalar_one(), connection.execute(open_roots).scalar_one())


def mark_deleted(connection: Connection, namespace: str, *, now: Instant) -> None:
    """From here on nobody finds it, and its tokens open nothing."""
    mine = sa.update(namespaces).where(namespaces.c.namespace == namespace, namespaces.c.deleted_at.is_(None))
    connection.execute(mine.values(deleted_at=now))
    live = sa.update(tokens).where(tokens.c.namespace == namespace, tokens.c.revoked_at.is_(None))
    connection.execute(live.values(revoked_at=now))


def being_removed(connection: Connection) -> list[str]:
    """Those that were deleted and still have rows, the oldest deletion first."""
    going = sa.select(namespaces.c.namespace).where(namespaces.c.deleted_at.is_not(None))
    return list(connection.execute(going.order_by(namespaces.c.deleted_at)).scalars())


def remove_some(connection: Connection, known: Plannings, namespace: str, *, now: Instant) -> RemovalStep:
    """The next step; each begins only where those before it find nothing more to do."""
    if write_rows.stop_positions(connection, namespace, LIMIT):
        return RemovalStep.MORE
    if _end_runs(connection, known, namespace, now):
        return RemovalStep.MORE
    parts: tuple[Callable[[Connection, str], int | None], ...] = (_runs, _schedules, _others, _counters)
    for part in parts:
        deleted = part(connection, namespace)
        if deleted is not None:
            return RemovalStep.MORE if deleted else RemovalStep.WAIT
    connection.execute(
        sa.delete(namespaces).where(namespaces.c.namespace == namespace, namespaces.c.deleted_at.is_not(None))
    )
    return RemovalStep.DONE


def _end_runs(connection: Connection, known: Plannings, namespace: str, now: Instant) -> int:
    """Whoever has one is told nothing more: a late answer is an answer about nothing."""
    open_ones = sa.select(runs.c.run_id).where(runs.c.namespace == namespace, _OPEN)
    ids = list(connection.execute(open_ones.order_by(runs.c.run_id).limit(_ENDED)).scalars())
    record_events(connection, known, [ReportedEvent(run_id, _GONE) for run_id in ids], now=now)
    return len(ids)


def _runs(connection: Connection, namespace: str) -> int | None:
    """Delete some runs and return the number of rows; None = there are no runs."""
    for table in run_archive.tables(connection):
        roots = sa.select(table.c.run_id).where(table.c.namespace == namespace, table.c.parent_run_id.is_(None))
        ids = list(connection.execute(roots.order_by(table.c.run_id).limit(_GROUP)).scalars())
        if ids:
            return delete_runs(connection, ids, runs=table).rows
    return None


def _schedules(connection: Connection, namespace: str) -> int | None:
    mine = sa.select(schedules.c.schedule_uid).where(schedules.c.namespace == namespace)
    uids = list(connection.execute(mine.order_by(schedules.c.schedule_uid).limit(_GROUP)).scalars())
    if not uids:
        return None
    deleted = delete_some(connection, history, history.c.schedule_uid.in_(uids), LIMIT)
    if deleted == LIMIT:
        return deleted
    texts = sa.select(schedule_revisions.c.planning).where(schedule_revisions.c.schedule_uid.in_(uids)).distinct()
    plannings = list(connection.execute(texts).scalars())
    owners = [schedule_owner(uid) for uid in uids]
    connection.execute(sa.delete(counters).where(counters.c.owner.in_(owners)))
    for table in (checkpoints, schedule_attributes, schedule_revisions, positions_table, schedules):
        deleted += connection.execute(sa.delete(table).where(table.c.schedule_uid.in_(uids))).rowcount
    return deleted + purge_plannings(connection, plannings)


def _others(connection: Connection, namespace: str) -> int | None:
    for table in _OTHERS:
        deleted = delete_some(connection, table, table.c.namespace == namespace, LIMIT)
        if deleted:
            return deleted
    return None


def _counters(connection: Connection, namespace: str) -> int | None:
    """Delete counters of a namespace's keys and assignees, so that a namespace created later starts at zero."""
    begin = (key_owner(namespace, ""), assignee_owner(namespace, ""))
    mine = sa.or_(*(counters.c.owner.startswith(each, autoescape=True) for each in begin))
    return delete_some(connection, counters, mine, LIMIT) or None
