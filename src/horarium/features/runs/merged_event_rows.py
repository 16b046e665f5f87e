"""SQL that reads the events of a run and of all runs below it, in the order of recording."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.states import RunEventType
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.statements import object_from_text
from horarium.platform.database.tables import run_events

_MEMBER = ("run_id", "node_id", "created_at")


class EventPlace(NamedTuple):
    """Where an event stands among those of all steps: what was recorded at the same moment is told run by run."""

    recorded_at: Instant
    run_id: bytes
    sequence: int


@dataclass(frozen=True, slots=True)
class StreamRow:
    run_id: bytes
    node_id: str | None
    sequence: int
    event_type: str
    recorded_at: Instant
    payload: dict[str, Any] | None


def merged_events(
    connection: Connection, run_id: bytes, *, is_root: bool, after: EventPlace | None, limit: int
) -> list[StreamRow]:
    """Stored events of the run, and for all runs below it also their creation, which is read from their row.

    The payload of that event is the same for all of them and is left to the caller.
    """
    rows = run_archive.rows_of_tree(
        connection, lambda runs: _merged((_of_root if is_root else _below)(runs, run_id), run_id, after, limit), run_id
    )
    return [
        StreamRow(run_id, node_id, sequence, kind, at, None if payload is None else object_from_text(payload))
        for run_id, node_id, sequence, kind, at, payload in rows
    ]


def _merged(family: sa.CTE, run_id: bytes, after: EventPlace | None, limit: int) -> sa.Select[Any]:
    stored = sa.select(
        run_events.c.run_id,
        family.c.node_id,
        run_events.c.sequence,
        run_events.c.event_type,
        run_events.c.recorded_at,
        run_events.c.payload,
    ).join_from(family, run_events, run_events.c.run_id == family.c.run_id)
    births = sa.select(
        family.c.run_id,
        family.c.node_id,
        sa.literal(1, sa.Integer),
        sa.literal(RunEventType.RUN_CREATED.value, sa.Text),
        family.c.created_at,
        sa.null(),
    ).where(family.c.run_id != run_id)
    both = sa.union_all(stored, births).subquery("told")
    key = both.c.recorded_at, both.c.run_id, both.c.sequence
    statement = sa.select(both).order_by(*key).limit(limit)
    if after is not None:
        statement = statement.where(sa.tuple_(*key) > sa.tuple_(*(sa.literal(part) for part in after)))
    return statement


def _member(runs: RunsTable) -> sa.Select[Any]:
    return sa.select(*(runs.c[name] for name in _MEMBER))


@cache
def _child(runs: RunsTable) -> RunsTable:
    return runs.alias("child")


def _of_root(runs: RunsTable, run_id: bytes) -> sa.CTE:
    """Every step names its root, however deep it is; the condition of the index stands there as text."""
    itself = _member(runs).where(runs.c.run_id == run_id)
    below = _member(runs).where(sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == run_id)
    return sa.union(itself, below).cte("family")


def _below(runs: RunsTable, run_id: bytes) -> sa.CTE:
    """From a run inside a workflow downwards, as deep as sub-workflows go."""
    family = _member(runs).where(runs.c.run_id == run_id).cte("family", recursive=True)
    child = _child(runs)
    return family.union(_member(child).join_from(family, child, child.c.parent_run_id == family.c.run_id))
