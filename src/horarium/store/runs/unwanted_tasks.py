"""What agents, and workers behind brokers, still do for runs that are over: kept until they were told.

A row is taken for as long as telling may take, and comes back if nobody says what came of it. After a few tries it is
dropped: an agent that cannot be told loses nothing but its own time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.instant import SECOND, Instant
from horarium.store.tables import runs, unwanted_tasks

# Seconds from one try to the next; after the last there is none.
PAUSES: Final = (1, 5, 30, 120)
MOST_TRIES: Final = len(PAUSES) + 1
_AT_ONCE = 500


class UnwantedTask(NamedTuple):
    """`reference` is the agent's own name for the task; `tries` how often it was told before.

    `agent_id` is the target where a broker has the task; no agent's id holds a slash.
    """

    run_id: bytes
    reference: str
    namespace: str
    agent_id: str
    tries: int = 0


def add(connection: Connection, tasks: Sequence[UnwantedTask], now: Instant) -> None:
    """To be told at once; one that is there already stays as it is."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for first in range(0, len(tasks), _AT_ONCE):
        rows = [{**task._asdict(), "next_at": now} for task in tasks[first : first + _AT_ONCE]]
        connection.execute(insert(unwanted_tasks).values(rows).on_conflict_do_nothing())


def any_due(connection: Connection, now: Instant) -> bool:
    return bool(connection.execute(sa.select(sa.exists().where(unwanted_tasks.c.next_at <= now))).scalar_one())


def take(connection: Connection, now: Instant, limit: int, patience_seconds: int) -> list[UnwantedTask]:
    """Those whose time has come, for as long as telling may take; namespaces take turns, one task a turn."""
    found = [UnwantedTask(bytes(row[0]), *row[1:]) for row in connection.execute(_due(now, limit))]
    wanted = _wanted_again(connection, found)
    for task in found:
        if task.tries >= MOST_TRIES or (task.run_id, task.reference) in wanted:
            forget(connection, task)
        else:
            _move(connection, task, task.tries + 1, now + patience_seconds * SECOND)
    return [
        task._replace(tries=task.tries + 1)
        for task in found
        if task.tries < MOST_TRIES and (task.run_id, task.reference) not in wanted
    ]


def _due(now: Instant, limit: int) -> sa.Select[Any]:
    """Locked. A crowd that agents of one tenant do not hear of stands in nobody else's way."""
    table = unwanted_tasks.c
    is_due = table.next_at <= now
    turn = sa.func.row_number().over(partition_by=table.namespace, order_by=(table.next_at, table.run_id))
    waiting = sa.select(table.run_id, table.reference, table.next_at, turn.label("turn")).where(is_due).subquery()
    first = (
        sa.select(waiting.c.run_id, waiting.c.reference).order_by(waiting.c.turn, waiting.c.next_at).limit(limit)
    ).subquery()
    chosen = sa.tuple_(table.run_id, table.reference).in_(sa.select(first.c.run_id, first.c.reference))
    columns = (table[name] for name in UnwantedTask._fields)
    return sa.select(*columns).where(is_due, chosen).order_by(table.next_at).with_for_update(skip_locked=True)


def _wanted_again(connection: Connection, tasks: Sequence[UnwantedTask]) -> set[tuple[bytes, str]]:
    """An agent may know a message again that is repeated, and go on with the task that it made of it."""
    if not tasks:
        return set()
    going_on = sa.select(runs.c.run_id, runs.c.reference).where(
        runs.c.run_id.in_([task.run_id for task in tasks]), runs.c.reference.is_not(None), runs.c.finished_at.is_(None)
    )
    return {(bytes(row.run_id), row.reference) for row in connection.execute(going_on)}


def tell_later(connection: Connection, task: UnwantedTask, now: Instant) -> None:
    """It could not be told; after the last try nobody tries again."""
    if task.tries >= MOST_TRIES:
        forget(connection, task)
    else:
        _move(connection, task, task.tries, now + PAUSES[task.tries - 1] * SECOND)


def forget(connection: Connection, task: UnwantedTask) -> None:
    connection.execute(sa.delete(unwanted_tasks).where(*_same(task)))


def _move(connection: Connection, task: UnwantedTask, tries: int, next_at: Instant) -> None:
    connection.execute(sa.update(unwanted_tasks).where(*_same(task)).values(tries=tries, next_at=next_at))


def _same(task: UnwantedTask) -> tuple[sa.ColumnElement[bool], ...]:
    return unwanted_tasks.c.run_id == task.run_id, unwanted_tasks.c.reference == task.reference
