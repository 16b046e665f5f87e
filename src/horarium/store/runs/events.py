"""How the stream of events of a run is written: by this file alone; the run's own row hands out the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, func, select, update

from horarium.instant import Instant
from horarium.schedule.event import RunEventType
from horarium.store.database.json_text import event_text
from horarium.store.database.set_wise import Insert
from horarium.store.tables import run_events, runs

NewRunEvent: TypeAlias = tuple[bytes, int, RunEventType, Mapping[str, Any]]
"""The run, the number of the event, what happened, and the payload."""

_ROWS = Insert(run_events, ("run_id", "sequence", "event_type", "recorded_at", "payload"))
_NUMBER = (
    update(runs)
    .where(runs.c.run_id == bindparam("id"))
    .values(next_event=runs.c.next_event + 1)
    .returning(runs.c.next_event - 1)
)


def append(connection: Connection, events: Iterable[NewRunEvent], *, now: Instant) -> None:
    """The caller has taken the numbers, in the statement that changes the runs."""
    rows = [(run_id, number, kind.value, now, event_text(payload)) for run_id, number, kind, payload in events]
    _ROWS.run(connection, rows)


def add_event(
    connection: Connection, run_id: bytes, event_type: RunEventType, now: Instant, payload: Mapping[str, Any]
) -> None:
    """One that changes nothing else of the run: it takes its number here."""
    number = connection.execute(_NUMBER, {"id": run_id}).scalar_one()
    append(connection, [(run_id, number, event_type, payload)], now=now)


def count_events(connection: Connection, run_id: bytes, event_type: RunEventType) -> int:
    """How often something has happened to a run."""
    own = (run_events.c.run_id == run_id, run_events.c.event_type == event_type.value)
    return int(connection.execute(select(func.count()).select_from(run_events).where(*own)).scalar_one())
