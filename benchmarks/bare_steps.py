"""What no engine of workflows can beat: a loop that writes the rows of steps one after the other, with no thought.

It claims 32 ready roots and walks them together through their steps. A birth, a claim and an end are a transaction
each, where one that ends a step also makes the next, one statement for each table. What it writes are copies of what
a real run has left in the same database: the rows of its steps, their events, those of the root and of its history.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier, Event
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection, text

from horarium.platform.database import Database, open_database
from horarium.platform.database.tables import history, run_events, runs
from horarium.platform.ids import new_id

ROOTS = 32
_START_SECONDS = 120
Row: TypeAlias = dict[str, Any]

_CLAIM_ROOTS = f"""
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = 'bench', lease_until = 1,
  launches = launches + 1, deadline = 1
WHERE run_id IN (
  SELECT run_id FROM runs WHERE state = 'ready' AND parent_run_id IS NULL
  ORDER BY namespace, target, priority DESC, ready_at, run_id LIMIT {ROOTS} FOR UPDATE SKIP LOCKED
)
RETURNING run_id, schedule_uid, nominal, next_event
"""
_BEGIN_ROOT = (
    "UPDATE runs SET state = 'running', lease_owner = NULL, lease_until = NULL, started_at = 1 WHERE run_id = :run"
)
_CLAIM_STEP = """
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = 'bench', lease_until = 1,
  launches = launches + 1, deadline = 1
WHERE run_id = :step
"""
_END = """
UPDATE runs SET state = 'succeeded', lease_epoch = lease_epoch + 1, lease_owner = NULL, lease_until = NULL,
  started_at = 1, finished_at = 1, result = :result, next_event = :sequence
WHERE run_id = :run
"""
_PROGRESS = "UPDATE runs SET progress = :progress WHERE run_id = :run"
_POSITION = """
UPDATE positions SET active = active - 1, last_completed_at = 1, last_completed_run_id = :run
WHERE schedule_uid = :schedule
"""


@dataclass(frozen=True, slots=True)
class Like:
    """One real run: its row, those of its steps in their order, and by run what was told of it."""

    root: Row
    steps: list[Row]
    events: dict[bytes, list[Row]]
    notices: list[Row]


@dataclass(frozen=True, slots=True)
class Root:
    run: bytes
    schedule: bytes
    nominal: int
    next_event: int


def work(url: str, ready: Barrier, over: Event) -> None:
    opened = open_database(url)
    like = opened.read(_like)
    ready.wait(_START_SECONDS)
    while roots := opened.write(_claim):
        _walk(opened, like, roots)
    while not over.is_set():
        time.sleep(0.01)
    opened.close()


def _like(connection: Connection) -> Like:
    def rows(table: sa.Table, *where: sa.ColumnElement[bool], by: sa.ColumnElement[Any]) -> list[Row]:
        return [dict(row._mapping) for row in connection.execute(sa.select(table).where(*where).order_by(by))]

    [root] = rows(runs, runs.c.parent_run_id.is_(None), runs.c.schedule_uid.is_(None), by=runs.c.run_id)
    steps = rows(runs, runs.c.parent_run_id == root["run_id"], by=runs.c.node_id)
    events = {
        run["run_id"]: rows(run_events, run_events.c.run_id == run["run_id"], by=run_events.c.sequence)
        for run in (root, *steps)
    }
    told = rows(history, history.c.run_id == root["run_id"], history.c.sequence.is_(None), by=history.c.feed_id)
    return Like(root, steps, events, told)


def _claim(connection: Connection) -> list[Root]:
    return [Root(*row) for row in connection.execute(text(_CLAIM_ROOTS))]


def _walk(opened: Database, like: Like, roots: list[Root]) -> None:
    own = [new_id() for _ in roots]
    opened.write(partial(_begin, like=like, roots=roots, own=own))
    for number, step in enumerate(like.steps):
        opened.write(partial(_claim_steps, own=own))
        following = [new_id() for _ in roots]
        opened.write(partial(_end_step, like=like, step=step, number=number, roots=roots, own=own, following=following))
        own = following
    opened.write(partial(_end_roots, like=like, roots=roots))


def _claim_steps(connection: Connection, own: list[bytes]) -> None:
    connection.execute(text(_CLAIM_STEP), [{"step": run} for run in own])


def _begin(connection: Connection, like: Like, roots: list[Root], own: list[bytes]) -> None:
    connection.execute(text(_BEGIN_ROOT), [{"run": root.run} for root in roots])
    _birth(connection, like.steps[0], roots, own)


def _birth(connection: Connection, step: Row, roots: list[Root], own: list[bytes]) -> None:
    unborn = {**step, "state": "ready", "finished_at": None, "started_at": None, "result": None}
    connection.execute(
        sa.insert(runs),
        [
            {**unborn, "run_id": run, "parent_run_id": root.run, "root_run_id": root.run, "nominal": root.nominal}
            for root, run in zip(roots, own, strict=True)
        ],
    )


def _end_step(
    connection: Connection,
    like: Like,
    step: Row,
    number: int,
    roots: list[Root],
    own: list[bytes],
    following: list[bytes],
) -> None:
    told = like.events[step["run_id"]]
    ended = [{"run": run, "result": step["result"], "sequence": len(told) + 1} for run in own]
    connection.execute(text(_END), ended)
    connection.execute(sa.insert(run_events), [{**event, "run_id": run} for run in own for event in told])
    progress = "s" * (number + 1)
    connection.execute(text(_PROGRESS), [{"run": root.run, "progress": progress} for root in roots])
    if number + 1 < len(like.steps):
        _birth(connection, like.steps[number + 1], roots, following)


def _end_roots(connection: Connection, like: Like, roots: list[Root]) -> None:
    told = [event for event in like.events[like.root["run_id"]] if event["event_type"] != "run.created"]
    last = [{"run": root.run, "result": like.root["result"], "sequence": root.next_event + len(told)} for root in roots]
    connection.execute(text(_END), last)
    if told:
        connection.execute(
            sa.insert(run_events),
            [
                {**event, "run_id": root.run, "sequence": root.next_event + place}
                for root in roots
                for place, event in enumerate(told)
            ],
        )
    connection.execute(text(_POSITION), [{"run": root.run, "schedule": root.schedule} for root in roots])
    if like.notices:
        unnumbered = [{name: value for name, value in notice.items() if name != "feed_id"} for notice in like.notices]
        connection.execute(
            sa.insert(history),
            [{**notice, "run_id": root.run, "schedule_uid": root.schedule} for root in roots for notice in unnumbered],
        )
