"""What was decided about the occurrences of a window of time, across the schedules of a namespace, or of some."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import LAST, Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import RunState
from horarium.store.database.json_text import object_from_text
from horarium.store.history.events import told_from
from horarium.store.runs import everywhere
from horarium.store.runs.states import OPEN_ROOT
from horarium.store.tables import history, positions, runs, schedules

MOST_OF_ONE: Final = 5_000
"""Of one schedule's history the newest numbers are looked at, where only some schedules are asked about."""

_MOST_OPEN: Final = 2_000
_KINDS: Final = frozenset(EventType)
_STATES: Final = frozenset(RunState)
_UNDER_WAY: Final = (RunState.RUNNING.value, RunState.AWAITING_APPROVAL.value)


@dataclass(frozen=True, slots=True)
class OccurrenceEvent:
    """`state` is that of its run now; None = it has none, or retention has removed it."""

    schedule_uid: bytes
    schedule_id: str
    nominal: Instant
    event_type: EventType
    run_id: bytes | None
    payload: dict[str, Any]
    state: RunState | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None


_RUN = (runs.c.state, runs.c.started_at, runs.c.finished_at)
_EVENT = (
    history.c.schedule_uid,
    schedules.c.schedule_id,
    history.c.nominal,
    history.c.event_type,
    history.c.run_id,
    history.c.payload,
)


def in_window(
    connection: Connection,
    namespace: str,
    start: Instant,
    end: Instant,
    most: int,
    wanted: Container[bytes] | None = None,
) -> tuple[list[OccurrenceEvent], Instant | None]:
    """From `start` on and before `end`, by the time of the occurrence; a row of missed ones stands at its first.

    `most` are looked at, and of these the ones of the schedules that are `wanted` are told; None = of all. And up to
    where that is; None = to the end.
    """
    rows, until = _rows(connection, window(start, end).where(history.c.namespace == namespace), most)
    return events_of(connection, [row for row in rows if wanted is None or row.schedule_uid in wanted]), until


def of_some(
    connection: Connection, uids: Sequence[bytes], start: Instant, end: Instant, most: int
) -> tuple[list[OccurrenceEvent], Instant | None]:
    """The same of some schedules, along the history of each: what others do in the window costs nothing.

    Only the newest `MOST_OF_ONE` numbers of each are looked at: see `reaches_back`.
    """
    looked_at = sa.and_(
        positions.c.schedule_uid == history.c.schedule_uid,
        history.c.sequence >= positions.c.next_sequence - MOST_OF_ONE,
    )
    own = window(start, end).join(positions, looked_at).where(positions.c.schedule_uid.in_(list(uids)))
    rows, until = _rows(connection, own, most)
    return events_of(connection, rows), until


def under_way(connection: Connection, namespace: str, before: Instant, most: int) -> list[OccurrenceEvent]:
    """Occurrences of before an instant whose runs go on or await an approval, the oldest first.

    Of a namespace with very many open runs some are looked at, lest those that wait make the question dear.
    """
    some = sa.select(runs.c.run_id).where(runs.c.namespace == namespace, sa.text(OPEN_ROOT)).limit(_MOST_OPEN)
    mine = (
        sa.select(runs.c.schedule_uid, schedules.c.schedule_id, runs.c.nominal, runs.c.run_id, *_RUN)
        .join_from(runs, schedules, runs.c.schedule_uid == schedules.c.schedule_uid)
        .where(runs.c.run_id.in_(some), runs.c.state.in_(_UNDER_WAY), runs.c.nominal < before)
        .order_by(runs.c.nominal, schedules.c.schedule_id)
        .limit(most)
    )
    return [
        OccurrenceEvent(
            uid, name, nominal, EventType.TRIGGERED, run_id, {}, RunState(state), _instant(started), _instant(finished)
        )
        for uid, name, nominal, run_id, state, started, finished in connection.execute(mine)
        if 0 <= nominal <= LAST
    ]


def reaches_back(connection: Connection, uids: Sequence[bytes], start: Instant) -> bool:
    """Tell whether the rows that `of_some` reads reach back to an instant."""
    mine = (
        sa.select(sa.literal(1))
        .join_from(positions, history, positions.c.schedule_uid == history.c.schedule_uid)
        .where(
            positions.c.schedule_uid.in_(list(uids)),
            positions.c.next_sequence > MOST_OF_ONE,
            history.c.sequence == positions.c.next_sequence - MOST_OF_ONE,
            history.c.recorded_at > start,
        )
    )
    return connection.execute(mine.limit(1)).first() is None


def window(start: Instant, end: Instant) -> sa.Select[Any]:
    return (
        sa.select(*_EVENT, *_RUN)
        .join_from(history, schedules, history.c.schedule_uid == schedules.c.schedule_uid)
        .outerjoin(runs, runs.c.run_id == history.c.run_id)
        .where(
            history.c.nominal.is_not(None),
            history.c.nominal >= start,
            history.c.recorded_at >= told_from(start),
            history.c.nominal < end,
        )
    )


def _rows(connection: Connection, statement: sa.Select[Any], most: int) -> tuple[Sequence[sa.Row[Any]], Instant | None]:
    rows = connection.execute(statement.order_by(history.c.nominal).limit(most)).all()
    return rows, rows[-1].nominal if len(rows) == most else None


def events_of(connection: Connection, rows: Sequence[sa.Row[Any]]) -> list[OccurrenceEvent]:
    moved = _archived(connection, [row.run_id for row in rows if row.run_id is not None and row.state is None])
    events = (_event(*row[: len(_EVENT)], *moved.get(row.run_id, row[len(_EVENT) :])) for row in rows)
    return [event for event in events if event is not None]


def _event(
    uid: bytes,
    schedule_id: str,
    nominal: Instant,
    kind: str,
    run_id: bytes | None,
    payload: str,
    state: str | None,
    started_at: Instant | None,
    finished_at: Instant | None,
) -> OccurrenceEvent | None:
    """Convert a row; None = an event of an unknown kind, which only the schedule's history shows, as unreadable."""
    if kind not in _KINDS:
        return None
    known = RunState(state) if state in _STATES else None
    told = EventType(kind), run_id, object_from_text(payload)
    return OccurrenceEvent(uid, schedule_id, nominal, *told, known, _instant(started_at), _instant(finished_at))


def _instant(value: Instant | None) -> Instant | None:
    """Return None for a number that is no instant."""
    return value if value is not None and 0 <= value <= LAST else None


def _archived(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes | None, Sequence[Any]]:
    """Data of those runs that are in the archive."""
    if not run_ids or not everywhere.has_archive(connection):
        return {}
    own = everywhere.of_archive(sa.select(runs.c.run_id, *_RUN).where(runs.c.run_id.in_(list(run_ids))))
    return {row[0]: row[1:] for row in connection.execute(own)}
