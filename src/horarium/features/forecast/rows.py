"""SQL of occurrences in a window: decided ones across schedules, and schedules that may have some ahead."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.states import EventType, Position, RunState, Status
from horarium.features.history.rows import recorded_since
from horarium.features.schedules.health_rows import ACTIVE
from horarium.instant import LAST, MILLISECOND, Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import ARCHIVED
from horarium.platform.database.run_states import OPEN_ROOT
from horarium.platform.database.statements import object_from_text
from horarium.platform.database.tables import history, plannings, positions, runs, schedules

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
            history.c.recorded_at >= recorded_since(start),
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
    if not run_ids or not run_archive.has_archive(connection):
        return {}
    own = sa.select(ARCHIVED.c.run_id, *(ARCHIVED.c[each.name] for each in _RUN))
    found = connection.execute(own.where(ARCHIVED.c.run_id.in_(list(run_ids))))
    return {row[0]: row[1:] for row in found}


# Of variables in one statement SQLite takes 32,766, and older ones 999.
_AT_ONCE = 900


class AgendaCandidate(NamedTuple):
    """As it is read, since most of very many are looked at once and no more. `planning` is the hash of its planning
    text, `status` a word of `Status`.
    """

    schedule_uid: bytes
    schedule_id: str
    planning: bytes
    active: int
    held: int
    paused_until: Instant | None
    decided_until: Instant
    next_due: Instant | None
    status: str
    generation: int
    runs_born: int
    rotation_index: int

    @property
    def position(self) -> Position:
        kept = (self.generation, self.runs_born, self.rotation_index)
        return Position(self.decided_until, self.next_due, Status(self.status), *kept)


_COLUMNS = tuple(positions.c[name] for name in AgendaCandidate._fields)


def active_candidates(connection: Connection, namespace: str, end: Instant, limit: int) -> list[AgendaCandidate]:
    """Those that are due before `end`: whoever is due first first, and by id where they are due at one instant."""
    # As text: PostgreSQL takes a partial index only for a condition that it can read.
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace, sa.text("status = 'active'"))
    due = mine.where(positions.c.next_due < end).order_by(
        positions.c.namespace, positions.c.next_due, positions.c.schedule_id
    )
    return list(_read(connection, due.limit(limit)))


def resting_candidates(connection: Connection, namespace: str, limit: int) -> list[AgendaCandidate]:
    """The paused and the broken, in no order."""
    mine = sa.select(*_COLUMNS).where(
        positions.c.namespace == namespace,
        sa.text("status <> 'active' AND status <> 'deleted'"),
        positions.c.status.in_(("paused", "broken")),
    )
    return list(_read(connection, mine.limit(limit)))


def longest_jitter(connection: Connection) -> Instant:
    """Longest jitter of all plannings of all namespaces. An unreadable text has none."""
    # A quote inside of somebody's text has a backslash before it: this can only be the member.
    name = '"jitter_ms":'
    told = (
        sa.cast(sa.func.substring(plannings.c.text, f"{name}([0-9]{{1,15}})"), sa.BigInteger)
        if connection.dialect.name == "postgresql"
        else sa.cast(
            sa.func.substr(plannings.c.text, sa.func.instr(plannings.c.text, name) + len(name), 18), sa.Integer
        )
    )
    found = connection.execute(sa.select(sa.func.max(told)).where(plannings.c.text.not_like(f"%{name}0,%")))
    return MILLISECOND * (found.scalar() or 0)


def candidates_among(
    connection: Connection, namespace: str, end: Instant, uids: Sequence[bytes]
) -> list[AgendaCandidate]:
    """Candidates among these schedules, in no order."""
    found: list[AgendaCandidate] = []
    due = sa.and_(ACTIVE, positions.c.next_due < end)
    at_rest = positions.c.status.in_((Status.PAUSED.value, Status.BROKEN.value))
    mine = sa.select(*_COLUMNS).where(positions.c.namespace == namespace, sa.or_(due, at_rest))
    for start in range(0, len(uids), _AT_ONCE):
        own = positions.c.schedule_uid.in_(uids[start : start + _AT_ONCE])
        found += _read(connection, mine.where(own))
    return found


def _read(connection: Connection, statement: sa.Select[Any]) -> Iterator[AgendaCandidate]:
    """Leave out positions with numbers that are no instants; a list of schedules shows them as unreadable."""
    return filter(_is_readable, map(AgendaCandidate._make, connection.execute(statement).all()))


def _is_readable(each: AgendaCandidate) -> bool:
    try:
        numbers = each.active + each.held + each.generation + each.runs_born + each.rotation_index
        return max(numbers, each.decided_until, each.paused_until or 0) <= LAST
    except TypeError:  # SQLite holds text in columns of numbers too
        return False
