"""The events of a run together with those of all its steps, in the order of recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import RunEventType
from horarium.store.database.json_text import object_from_text
from horarium.store.runs import everywhere
from horarium.store.tables import run_events, runs

_MEMBER = (runs.c.run_id, runs.c.node_id, runs.c.created_at)


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


def merged(
    connection: Connection, run_id: bytes, *, is_root: bool, after: EventPlace | None, limit: int
) -> list[StreamRow]:
    """Stored events of the run, and for all runs below it also their creation, which is read from their row.

    The payload of that event is the same for all of them and is left to the caller.
    """
    family = (_of_root if is_root else _below)(run_id)
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
    return [
        StreamRow(run_id, node_id, sequence, kind, at, None if payload is None else object_from_text(payload))
        for run_id, node_id, sequence, kind, at, payload in everywhere.either(connection, statement, run_id)
    ]


def _itself(run_id: bytes) -> sa.Select[Any]:
    return sa.select(*_MEMBER).where(runs.c.run_id == run_id)


def _of_root(run_id: bytes) -> sa.CTE:
    """Every step names its root, however deep it is; the condition of the index stands there as text."""
    below = sa.select(*_MEMBER).where(sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == run_id)
    return sa.union(_itself(run_id), below).cte("family")


def _below(run_id: bytes) -> sa.CTE:
    """From a run inside a workflow downwards, as deep as sub-workflows go."""
    family = _itself(run_id).cte("family", recursive=True)
    child = runs.alias("child")
    columns = sa.select(*(child.c[each.name] for each in _MEMBER))
    return family.union(columns.join_from(family, child, child.c.parent_run_id == family.c.run_id))
