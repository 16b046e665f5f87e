"""What was decided about the occurrences of a window of time, across the schedules of a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import RunState
from horarium.store.database.json_text import from_text
from horarium.store.tables import history, runs, schedules


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
            history.c.nominal < end,
        )
        .order_by(history.c.nominal)
        .limit(limit)
    )
    return [
        OccurrenceEvent(
            uid,
            schedule_id,
            nominal,
            EventType(kind),
            run_id,
            None if state is None else RunState(state),
            from_text(payload),
        )
        for uid, schedule_id, nominal, kind, run_id, state, payload in connection.execute(statement)
    ]
