"""The occurrences of a schedule that had no run, read off its history: skipped one by one, or missed in a row."""

from __future__ import annotations

from sqlalchemy import Connection

from horarium.schedule.event import EventType
from horarium.store.history import HistoryRow, select_events, to_events
from horarium.store.tables import history

_KINDS = (EventType.TRIGGER_SKIPPED.value, EventType.MISSED.value)


def newest(
    connection: Connection,
    uid: bytes,
    *,
    by_clock: bool = True,
    by_hand: bool = True,
    before_sequence: int | None = None,
    limit: int,
) -> list[HistoryRow]:
    """Newest first. What the clock asked for has a nominal time; a trigger by hand is nobody's occurrence."""
    statement = (
        select_events()
        .where(history.c.schedule_uid == uid, history.c.event_type.in_(_KINDS))
        .order_by(history.c.sequence.desc())
        .limit(limit)
    )
    if not by_hand:
        statement = statement.where(history.c.nominal.is_not(None))
    if not by_clock:
        statement = statement.where(history.c.nominal.is_(None))
    if before_sequence is not None:
        statement = statement.where(history.c.sequence < before_sequence)
    return to_events(connection, statement)
