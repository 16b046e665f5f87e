"""How the audit stream of a schedule is read: what was decided about it, numbered without gaps.

`append.py` writes it, and `feed.py` reads those of all schedules. Notices stand in the same table without a number; no
reader here sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import DAY, Instant
from horarium.schedule.event import EventType
from horarium.store.database.json_text import object_from_text
from horarium.store.database.page_bytes import Row, load_by, page, sized
from horarium.store.database.typed_rows import TypedRows
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


EVENTS = TypedRows(HistoryRow, history, key="sequence", event_type=EventType, payload=object_from_text)
_SIZED = sized(EVENTS.select, history.c.payload)


def read(connection: Connection, uid: bytes, *, after_sequence: int = 0, limit: int) -> list[HistoryRow]:
    """Read oldest first; events that cannot be read are marked."""
    statement = (
        EVENTS.select.where(history.c.schedule_uid == uid, history.c.sequence > after_sequence)
        .order_by(history.c.sequence)
        .limit(limit)
    )
    return EVENTS.all_listed(connection, statement)


def read_page(
    connection: Connection, uid: bytes, *, after_sequence: int, limit: int, newest_first: bool = False
) -> tuple[list[HistoryRow], bool]:
    """Read as many events as fit in a page, and whether there are more; newest first, 0 is the newest."""
    number = history.c.sequence
    if newest_first:
        wanted, order = number < after_sequence if after_sequence else number.is_not(None), number.desc()
    else:
        wanted, order = number > after_sequence, number.asc()
    statement = _SIZED.where(history.c.schedule_uid == uid, wanted).order_by(order).limit(limit + 1)
    found = connection.execute(statement).all()
    rows, more = page(found, limit, EVENTS.place_of("payload"), load_payloads(connection, EVENTS.place_of("feed_id")))
    return [EVENTS.listed(row) for row in rows], more


def load_payloads(connection: Connection, place: int) -> Callable[[Sequence[Row]], Mapping[Row, Any]]:
    """Prepare to load payloads of rows that have their `feed_id` at a place."""
    return load_by(connection, history.c.feed_id, place, history.c.payload)


def read_newest(
    connection: Connection, uid: bytes, *, before_sequence: int | None = None, limit: int
) -> list[HistoryRow]:
    """Newest first."""
    numbered = history.c.sequence.is_not(None) if before_sequence is None else history.c.sequence < before_sequence
    statement = EVENTS.select.where(history.c.schedule_uid == uid, numbered)
    return EVENTS.all(connection, statement.order_by(history.c.sequence.desc()).limit(limit))


def newest_types(connection: Connection, uid: bytes, limit: int) -> list[str]:
    """Types of the last events, the newest first."""
    mine = sa.select(history.c.event_type).where(history.c.schedule_uid == uid, history.c.sequence.is_not(None))
    return list(connection.execute(mine.order_by(history.c.sequence.desc()).limit(limit)).scalars())


def last_sequence(connection: Connection, uid: bytes) -> int:
    """0 = it has no history."""
    last = connection.execute(sa.select(sa.func.max(history.c.sequence)).where(history.c.schedule_uid == uid))
    return last.scalar_one() or 0


def events_about(connection: Connection, uid: bytes, nominal: Instant) -> list[HistoryRow]:
    """All events whose occurrence, or range of occurrences, holds the instant: the decision and what followed."""
    last = sa.func.coalesce(history.c.nominal_last, history.c.nominal)
    statement = EVENTS.select.where(
        history.c.schedule_uid == uid,
        history.c.nominal <= nominal,
        last >= nominal,
        history.c.recorded_at >= told_from(nominal),
    ).order_by(history.c.sequence)
    return EVENTS.all(connection, statement)


def told_from(nominal: Instant) -> Instant:
    """Nothing is decided before its time: tables of earlier weeks need no look. The day is for clocks that differ."""
    return nominal - DAY


def decision_about(connection: Connection, uid: bytes, nominal: Instant) -> HistoryRow | None:
    """The first event about an occurrence is its decision; a release or a backfill comes later."""
    found = events_about(connection, uid, nominal)
    return found[0] if found else None
