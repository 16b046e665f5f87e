"""How the stream of events of a run is written: by this file alone; the run's own row hands out the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, bindparam, func, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from horarium.instant import Instant
from horarium.schedule.event import RunEventType
from horarium.store.database.json_text import event_text
from horarium.store.database.set_wise import Insert
from horarium.store.runs import everywhere
from horarium.store.tables import run_events, runs, runs_archive

NewRunEvent: TypeAlias = tuple[bytes, int, RunEventType, Mapping[str, Any]]
"""The run, the number of the event, what happened, and the payload."""

_ROWS = Insert(run_events, ("run_id", "sequence", "event_type", "recorded_at", "payload"))


def _number(of: Table) -> ReturningUpdate[int]:
    own = update(of).where(of.c.run_id == bindparam("id")).values(next_event=of.c.next_event + 1)
    return own.returning(of.c.next_event - 1)


_NUMBER, _ARCHIVED_NUMBER = _number(runs), _number(runs_archive)


def append(connection: Connection, events: Iterable[NewRunEvent], *, now: Instant) -> None:
    """The caller has taken the numbers, in the statement that changes the runs."""
    rows = [(run_id, number, kind.value, now, event_text(payload)) for run_id, number, kind, payload in events]
    _ROWS.run(connection, rows)


def add_event(
    connection: Connection, run_id: bytes, event_type: RunEventType, now: Instant, payload: Mapping[str, Any]
) -> None:
    """One that changes nothing else of the run: it takes its number here."""
    number = connection.execute(_NUMBER, {"id": run_id}).scalar_one_or_none()
    if number is None and everywhere.has_archive(connection):
        number = connection.execute(_ARCHIVED_NUMBER, {"id": run_id}).scalar_one_or_none()
    if number is None:
        return  # it has just been deleted, and what was said of it with it
    append(connection, [(run_id, number, event_type, payload)], now=now)


def count_events(connection: Connection, run_id: bytes, event_type: RunEventType) -> int:
    """Count events of one type in a run's stream."""
    own = (run_events.c.run_id == run_id, run_events.c.event_type == event_type.value)
    return int(connection.execute(select(func.count()).select_from(run_events).where(*own)).scalar_one())
