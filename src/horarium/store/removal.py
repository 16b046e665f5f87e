"""How a namespace is taken away with all its rows: nothing of it starts any more, what is open ends, then rows go.

A step is one transaction of bounded size; whoever asks again goes on where the last step ended. Which tables hold
rows of a namespace is read off the schema, so that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.life.event import Terminated
from horarium.schedule.run import OPEN
from horarium.store.counters import assignee_owner, key_owner, schedule_owner
from horarium.store.orphans import purge_plannings
from horarium.store.retention import LIMIT, delete_runs, delete_some
from horarium.store.runs import everywhere
from horarium.store.runs.states import OPEN_ROOT, sql_list
from horarium.store.runs.writer import Happened, record_events
from horarium.store.schedules import positions
from horarium.store.schedules.due import Plannings
from horarium.store.tables import (
    audit,
    audit_heads,
    checkpoints,
    counters,
    history,
    metadata,
    namespaces,
    runs,
    schedule_attributes,
    schedule_revisions,
    schedules,
    tokens,
)
from horarium.store.tables import positions as positions_table

# Runs that are ended, and runs or schedules that are deleted with what hangs on them, in one transaction.
_ENDED = 100
_GROUP = 20
_GONE = Terminated("the namespace was deleted", "namespace_deleted")
_OPEN = sa.text(f"state IN {sql_list(OPEN)}")
# What was done in it stays on record, for the admins of the house.
_KEPT = (namespaces, audit, audit_heads)
# Those that are left when schedules and runs are gone.
_OTHERS = [table for table in metadata.sorted_tables if "namespace" in table.c and table not in _KEPT]


@dataclass(frozen=True, slots=True)
class Usage:
    """Live schedules and open runs of a namespace."""

    schedules: int
    open_runs: int


class Step(Enum):
    MORE = auto()
    WAIT = auto()  # somebody else holds what is to go
    DONE = auto()


def lock(connection: Connection, namespace: str) -> bool:
    """Ours until the transaction ends; False if there is none of that name."""
    mine = sa.select(namespaces.c.namespace).where(
        namespaces.c.namespace == namespace, namespaces.c.deleted_at.is_(None)
    )
    return connection.execute(mine.with_for_update()).one_or_none() is not None


def usage(connection: Connection, namespace: str) -> Usage:
    live = sa.select(sa.func.count()).select_from(schedules)
    live = live.where(schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    open_roots = sa.select(sa.func.count()).select_from(runs).where(runs.c.namespace == namespace, sa.text(OPEN_ROOT))
    return Usage(connection.execute(live).scalar_one(), connection.execute(open_roots).scalar_one())


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


def remove_some(connection: Connection, known: Plannings, namespace: str, *, now: Instant) -> Step:
    """The next step; each begins only where those before it find nothing more to do."""
    if positions.stop_all(connection, namespace, LIMIT):
        return Step.MORE
    if _end_runs(connection, known, namespace, now):
        return Step.MORE
    parts: tuple[Callable[[Connection, str], int | None], ...] = (_runs, _schedules, _others, _counters)
    for part in parts:
        deleted = part(connection, namespace)
        if deleted is not None:
            return Step.MORE if deleted else Step.WAIT
    connection.execute(
        sa.delete(namespaces).where(namespaces.c.namespace == namespace, namespaces.c.deleted_at.is_not(None))
    )
    return Step.DONE


def _end_runs(connection: Connection, known: Plannings, namespace: str, now: Instant) -> int:
    """Whoever has one is told nothing more: a late answer is an answer about nothing."""
    open_ones = sa.select(runs.c.run_id).where(runs.c.namespace == namespace, _OPEN)
    ids = list(connection.execute(open_ones.order_by(runs.c.run_id).limit(_ENDED)).scalars())
    record_events(connection, known, [Happened(run_id, _GONE) for run_id in ids], now=now)
    return len(ids)


def _runs(connection: Connection, namespace: str) -> int | None:
    """Delete some runs and return the number of rows; None = there are no runs."""
    for table in everywhere.tables(connection):
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
