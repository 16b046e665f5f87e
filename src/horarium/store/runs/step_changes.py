"""What workflows have yet to take note of: a row for each thing that happened to one of their steps, or to them.

A row is inserted in the transaction of what it tells, without a lock on the workflow's run, so that steps that end
together do not wait for each other. Whoever advances the run deletes it in the transaction that acts on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.ids import id_at, new_id
from horarium.instant import Instant
from horarium.life.change import Used
from horarium.store.database.set_wise import Insert, select_by_ids
from horarium.store.tables import step_changes

NOTHING_USED = Used(0, 0, 0)
_ROWS = Insert(step_changes, ("change_id", "run_id", "step_run_id", "cost", "tokens", "tool_calls", "finish"))


class Noted(NamedTuple):
    """`run_id` is the workflow's; without a step the workflow itself is to be looked at. `used`: by how much more."""

    run_id: bytes
    step_run_id: bytes | None = None
    used: Used = NOTHING_USED
    finish: bool = False


def note(connection: Connection, noted: Iterable[Noted]) -> None:
    _ROWS.run(connection, [(new_id(), each.run_id, each.step_run_id, *each.used, each.finish) for each in noted])


_RUNNING_WORKFLOWS = "SELECT run_id FROM runs WHERE workflow_version IS NOT NULL AND state = 'running' AND run_id"


def note_stops(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """These were asked to stop: workflows among them pass it on to their steps."""
    if run_ids:
        note(connection, [Noted(row[0]) for row in select_by_ids(connection, _RUNNING_WORKFLOWS, run_ids)])


_FIRST = """
SELECT DISTINCT run_id, finish
FROM (SELECT run_id, finish FROM step_changes ORDER BY change_id LIMIT {limit:d}) AS oldest
"""


class FirstNoted(NamedTuple):
    """Workflows: those to be moved on, and those to be ended."""

    to_move: list[bytes]
    to_end: list[bytes]


def first_noted(connection: Connection, limit: int) -> FirstNoted:
    """The workflows that the oldest rows are about."""
    rows = list(connection.exec_driver_sql(_FIRST.format(limit=limit)))
    return FirstNoted([run_id for run_id, ends in rows if not ends], [run_id for run_id, ends in rows if ends])


_TAKE = "DELETE FROM step_changes WHERE {which} AND run_id"
_TAKEN = "RETURNING run_id, step_run_id, cost, tokens, tool_calls"


def take(connection: Connection, run_ids: Sequence[bytes], *, finish: bool) -> list[Noted]:
    """All that is noted of these workflows; the caller acts on it in this transaction."""
    if not run_ids:
        return []
    statement = _TAKE.format(which="finish" if finish else "NOT finish")
    rows = select_by_ids(connection, statement, run_ids, _TAKEN)
    return [Noted(run_id, step, Used(*used), finish) for run_id, step, *used in rows]


def forget_missing(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """Delete notes about runs that no longer exist: no workflow would ever read them."""
    known = {row[0] for row in select_by_ids(connection, "SELECT run_id FROM runs WHERE run_id", run_ids)}
    forget(connection, [run_id for run_id in run_ids if run_id not in known])


def forget(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """Nothing that was noted of these matters any more: they have ended."""
    if run_ids:
        select_by_ids(connection, "DELETE FROM step_changes WHERE run_id", run_ids, "RETURNING run_id")


def pending(connection: Connection, *, made_before: Instant | None = None) -> int:
    """Number of workflows with unprocessed changes."""
    count = sa.select(sa.func.count()).select_from(step_changes)
    if made_before is not None:
        count = count.where(step_changes.c.change_id < id_at(made_before))
    number: int = connection.execute(count).scalar_one()
    return number
