"""The audit stream: what was decided about each schedule, numbered without gaps. `feed.py` reads all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.record import NewEvent
from horarium.instant import Instant
from horarium.schedule.event import EventType
from horarium.store.database.json_text import from_text, to_text
from horarium.store.tables import history


@dataclass(frozen=True, slots=True)
class HistoryRow:
    feed_id: int
    transaction_id: int | None
    schedule_uid: bytes
    sequence: int
    namespace: str
    event_type: EventType
    recorded_at: Instant
    nominal: Instant | None
    nominal_last: Instant | None
    run_id: bytes | None
    payload: dict[str, Any]


_ROW = [history.c[each.name] for each in fields(HistoryRow)]


def append(connection: Connection, uid: bytes, namespace: str, events: Sequence[NewEvent], *, now: Instant) -> int:
    """The sequence after the last one, for the position to keep. Raises Conflict if one is taken."""
    if not events:
        raise ValueError("there is nothing to append")
    rows = [
        {
            "schedule_uid": uid,
            "namespace": namespace,
            "sequence": event.sequence,
            "event_type": event.event_type.value,
            "recorded_at": now,
            "nominal": event.nominal,
            "nominal_last": event.nominal_last,
            "run_id": event.run_id,
            "payload": to_text(event.payload),
        }
        for event in events
    ]
    connection.execute(sa.insert(history), rows)
    return events[-1].sequence + 1


def read(connection: Connection, uid: bytes, *, after_sequence: int = 0, limit: int) -> list[HistoryRow]:
    """Oldest first."""
    statement = (
        sa.select(*_ROW)
        .where(history.c.schedule_uid == uid, history.c.sequence > after_sequence)
        .order_by(history.c.sequence)
        .limit(limit)
    )
    return to_events(connection, statement)


def read_newest(
    connection: Connection, uid: bytes, *, before_sequence: int | None = None, limit: int
) -> list[HistoryRow]:
    """Newest first."""
    statement = sa.select(*_ROW).where(history.c.schedule_uid == uid).order_by(history.c.sequence.desc()).limit(limit)
    if before_sequence is not None:
        statement = statement.where(history.c.sequence < before_sequence)
    return to_events(connection, statement)


def events_about(connection: Connection, uid: bytes, nominal: Instant) -> list[HistoryRow]:
    """All events whose occurrence, or range of occurrences, holds the instant: the decision and what followed."""
    last = sa.func.coalesce(history.c.nominal_last, history.c.nominal)
    statement = (
        sa.select(*_ROW)
        .where(history.c.schedule_uid == uid, history.c.nominal <= nominal, last >= nominal)
        .order_by(history.c.sequence)
    )
    return to_events(connection, statement)


def decision_about(connection: Connection, uid: bytes, nominal: Instant) -> HistoryRow | None:
    """The first event about an occurrence is its decision; a release or a backfill comes later."""
    found = events_about(connection, uid, nominal)
    return found[0] if found else None


def select_events() -> sa.Select[Any]:
    """For those who ask in another order; `to_events` reads the answer."""
    return sa.select(*_ROW)


def to_events(connection: Connection, statement: sa.Select[Any]) -> list[HistoryRow]:
    return [_to_row(values) for values in connection.execute(statement)]


def _to_row(values: sa.Row[Any]) -> HistoryRow:
    named = values._asdict()
    parsed = {"event_type": EventType(named["event_type"]), "payload": from_text(named["payload"])}
    return HistoryRow(**(named | parsed))
