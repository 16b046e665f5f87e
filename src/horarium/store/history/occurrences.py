"""What was decided about the occurrences of a window of time, across the schedules of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import RunState
from horarium.store.database.json_text import from_text
from horarium.store.history.events import told_from
from horarium.store.runs import everywhere
from horarium.store.tables import history, runs, runs_archive, schedules


@dataclass(frozen=True, slots=True)
class OccurrenceEvent:
    """`state` is that of its run now; None = it has none, or retention has removed it."""

    schedule_uid: bytes
    schedule_id: str
    nominal: Instant
    event_type: EventType
    run_id: bytes | None
    state: RunState | None
    payload: dict[str, Any]


def in_window(
    connection: Connection, namespace: str, start: Instant, end: Instant, limit: int
) -> list[OccurrenceEvent]:
    """From `start` on and before `end`, by the time of the occurrence; a row of missed ones stands at its first."""
    statement = (
        sa.select(
            history.c.schedule_uid,
            schedules.c.schedule_id,
            history.c.nominal,
            history.c.event_type,
            history.c.run_id,
            runs.c.state,
            history.c.payload,
        )
        .join_from(history, schedules, history.c.schedule_uid == schedules.c.schedule_uid)
        .outerjoin(runs, runs.c.run_id == history.c.run_id)
        .where(
            history.c.namespace == namespace,
            history.c.nominal.is_not(None),
            history.c.nominal >= start,
            history.c.recorded_at >= told_from(start),
            history.c.nominal < end,
        )
        .order_by(history.c.nominal)
        .limit(limit)
    )
    rows = connection.execute(statement).all()
    moved = _archived_states(connection, [row.run_id for row in rows if row.run_id is not None and row.state is None])
    return [
        OccurrenceEvent(
            uid,
            schedule_id,
            nominal,
            EventType(kind),
            run_id,
            None if state is None and run_id not in moved else RunState(state or moved[run_id]),
            from_text(payload),
        )
        for uid, schedule_id, nominal, kind, run_id, state, payload in rows
    ]


def _archived_states(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, str]:
    if not run_ids or not everywhere.has_archive(connection):
        return {}
    found = sa.select(runs_archive.c.run_id, runs_archive.c.state).where(runs_archive.c.run_id.in_(run_ids))
    return {row.run_id: row.state for row in connection.execute(found)}
