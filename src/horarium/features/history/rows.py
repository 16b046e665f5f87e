"""SQL of the history of schedules: append events and notices, and read events.

Events of a schedule are numbered without gaps. Notices are entries of the feed that are no decision about a schedule:
they stand in the same table without a number, and no reader of events sees them. No other module writes the table.
Skips are occurrences without a run: skipped one by one, or missed in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, assert_never

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.facts import Missed
from horarium.core.decision.record import NewEvent, missed_values
from horarium.core.document.states import CommandContext, EventType, NoticeType, Origin, checked_payload, notice_payload
from horarium.instant import DAY, Instant
from horarium.platform.database.limits import Before, cutoff, latest
from horarium.platform.database.statements import (
    Row,
    RowInsert,
    TypedRows,
    event_text,
    load_by,
    object_from_text,
    page_within_bytes,
    sized,
)
from horarium.platform.database.tables import history


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
    rows, more = page_within_bytes(
        found, limit, EVENTS.place_of("payload"), load_payloads(connection, EVENTS.place_of("feed_id"))
    )
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
        history.c.recorded_at >= recorded_since(nominal),
    ).order_by(history.c.sequence)
    return EVENTS.all(connection, statement)


def recorded_since(nominal: Instant) -> Instant:
    """Nothing is decided before its time: tables of earlier weeks need no look. The day is for clocks that differ."""
    return nominal - DAY


def decision_about(connection: Connection, uid: bytes, nominal: Instant) -> HistoryRow | None:
    """The first event about an occurrence is its decision; a release or a backfill comes later."""
    found = events_about(connection, uid, nominal)
    return found[0] if found else None


Stream: TypeAlias = tuple[bytes, str, Sequence[NewEvent]]
"""The uid and the namespace of a schedule, and what is new about it."""

_ROWS = RowInsert(
    history,
    (
        "schedule_uid", "sequence", "namespace", "event_type", "recorded_at", "nominal", "nominal_last", "run_id",
        "payload",
    ),
)  # fmt: skip


def append(connection: Connection, streams: Iterable[Stream], *, now: Instant) -> None:
    """Raises Conflict(`history_in_order`) if a number is taken."""
    _ROWS.run(
        connection,
        [
            (uid, sequence, namespace, kind.value, now, nominal, nominal_last, run_id, event_text(payload))
            for uid, namespace, events in streams
            for sequence, kind, nominal, nominal_last, run_id, payload in events
        ],
    )


class Journal:
    """The events that one change leaves, numbered from where the schedule's stream ends."""

    def __init__(self, next_sequence: int, now: Instant, context: CommandContext | None = None) -> None:
        self.next_sequence = next_sequence
        self._now = now
        self._context = context
        self._events: list[NewEvent] = []

    def add(self, event_type: EventType, **values: object) -> None:
        self.about(event_type, values)

    def missed(self, range_: Missed | None) -> None:
        """Occurrences that the change overtook; None = there were none."""
        if range_ is not None:
            self.about(EventType.MISSED, missed_values(range_), range_.first, range_.last)

    def about(
        self,
        event_type: EventType,
        values: Mapping[str, object],
        nominal: Instant | None = None,
        nominal_last: Instant | None = None,
        run_id: bytes | None = None,
    ) -> None:
        """An event about an occurrence, a range of them, or a run."""
        said = values if self._context is None else {**values, "command_context": self._context}
        payload = checked_payload(event_type, said)
        self._events.append(NewEvent(self.next_sequence, event_type, nominal, nominal_last, run_id, payload))
        self.next_sequence += 1

    def stream(self, uid: bytes, namespace: str) -> Stream:
        """For whoever writes several at once; `next_sequence` is what the position has to keep."""
        return uid, namespace, tuple(self._events)

    def write(self, connection: Connection, uid: bytes, namespace: str) -> int:
        """The number of the next event, for the position to keep."""
        append(connection, [(uid, namespace, self._events)], now=self._now)
        return self.next_sequence


_NOTICE_ROWS = RowInsert(history, ("schedule_uid", "namespace", "event_type", "recorded_at", "run_id", "payload"))


class Notice(NamedTuple):
    kind: NoticeType
    namespace: str
    schedule_uid: bytes | None
    run_id: bytes | None
    values: Mapping[str, object]


def append_notices(connection: Connection, notices: Iterable[Notice], *, now: Instant) -> None:
    """All of them by one statement, in the transaction of what they tell."""
    _NOTICE_ROWS.run(
        connection,
        [
            (
                each.schedule_uid,
                each.namespace,
                each.kind.value,
                now,
                each.run_id,
                event_text(notice_payload(each.kind, each.values)),
            )
            for each in notices
        ],
    )


def purge_notices(connection: Connection, *, recorded_before: Before, limit: int) -> int:
    """The oldest, along their own index; how many are gone."""
    some = (
        sa.select(history.c.feed_id)
        .where(
            history.c.sequence.is_(None),
            history.c.recorded_at < latest(recorded_before),
            history.c.recorded_at < cutoff(recorded_before, history.c.namespace),
        )
        .order_by(history.c.recorded_at)
        .limit(limit)
    )
    return connection.execute(sa.delete(history).where(history.c.feed_id.in_(some))).rowcount


_KINDS = (EventType.TRIGGER_SKIPPED.value, EventType.MISSED.value)


def newest_skips(
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
