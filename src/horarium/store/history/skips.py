"""The occurrences of a schedule that had no run, read off its history: skipped one by one, or missed in a row."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.schedule.event import EventType
from horarium.schedule.run import Origin
from horarium.store.history.events import EVENTS, HistoryRow
from horarium.store.tables import history

_KINDS = (EventType.TRIGGER_SKIPPED.value, EventType.MISSED.value)


def newest(
    connection: Connection,
    uid: bytes,
    *,
    origins: Collection[Origin] = tuple(Origin),
    before_sequence: int | None = None,
    limit: int,
) -> list[HistoryRow]:
    """Newest first."""
    statement = (
        EVENTS.select.where(history.c.schedule_uid == uid, history.c.event_type.in_(_KINDS))
        .order_by(history.c.sequence.desc())
        .limit(limit)
    )
    if set(origins) != set(Origin):
        statement = statement.where(sa.or_(sa.false(), *(_is_of(origin) for origin in origins)))
    if before_sequence is not None:
        statement = statement.where(history.c.sequence < before_sequence)
    return EVENTS.all(connection, statement)


def _is_of(origin: Origin) -> sa.ColumnElement[bool]:
    """A trigger by hand is nobody's occurrence; a row of missed ones has no origin, since only the clock misses any."""
    by_hand = history.c.nominal.is_(None)
    # Not read as JSON: PostgreSQL does not look into what holds half of a surrogate pair, and a condition may see one.
    by_backfill = history.c.payload.contains(f'"origin":"{Origin.BACKFILL.value}"', autoescape=True)
    match origin:
        case Origin.MANUAL:
            return by_hand
        case Origin.BACKFILL:
            return by_backfill
        case Origin.SCHEDULED:
            return sa.not_(sa.or_(by_hand, by_backfill))
        case Origin.API | Origin.STEP:
            return sa.false()  # what no schedule asked for is skipped by none
        case _:
            assert_never(origin)
