"""The events of a run together with those of all its steps, in the order of recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.database.json_text import from_text
from horarium.store.tables import run_events, runs


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
    payload: dict[str, Any]


def merged(
    connection: Connection, run_id: bytes, *, is_root: bool, after: EventPlace | None, limit: int
) -> list[StreamRow]:
    """Those that are stored, of the run and of all that is below it."""
    key = sa.tuple_(run_events.c.recorded_at, run_events.c.run_id, run_events.c.sequence)
    family = (_of_root if is_root else _below)(run_id)
    statement = (
        sa.select(
            run_events.c.run_id,
            family.c.node_id,
            run_events.c.sequence,
            run_events.c.event_type,
            run_events.c.recorded_at,
            run_events.c.payload,
        )
        .join_from(family, run_events, run_events.c.run_id == family.c.run_id)
        .order_by(run_events.c.recorded_at, run_events.c.run_id, run_events.c.sequence)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(key > sa.tuple_(*(sa.literal(part) for part in after)))
    return [StreamRow(*row[:5], from_text(row[5])) for row in connection.execute(statement)]


def _itself(run_id: bytes) -> sa.Select[Any]:
    return sa.select(runs.c.run_id, runs.c.node_id).where(runs.c.run_id == run_id)


def _of_root(run_id: bytes) -> sa.CTE:
    """Every step names its root, however deep it is; the condition of the index stands there as text."""
    below = sa.select(runs.c.run_id, runs.c.node_id).where(
        sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == run_id
    )
    return sa.union(_itself(run_id), below).cte("family")


def _below(run_id: bytes) -> sa.CTE:
    """From a run inside a workflow downwards, as deep as sub-workflows go."""
    family = _itself(run_id).cte("family", recursive=True)
    child = runs.alias("child")
    return family.union(
        sa.select(child.c.run_id, child.c.node_id).join_from(family, child, child.c.parent_run_id == family.c.run_id)
    )
