"""How plans follow a new tzdata: a schedule whose next occurrence moves begins a new generation."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.decision import lifecycle
from horarium.decision.plan import Missed
from horarium.decision.record import NewEvent, missed_values
from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import CommandContext, EventType, make_payload
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.store.history import events as history
from horarium.store.retention import set_checkpoint
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ScheduleRow, find_by_uid
from horarium.store.tables import facts, positions

CHANGED_FIELD = "tzdata"
"""What ScheduleUpdated names as changed."""

_TZDATA = "tzdata"
_PLANNED = (Status.ACTIVE.value, Status.PAUSED.value)


@dataclass(frozen=True, slots=True)
class Looked:
    """Schedules that move, with their namespaces; `after` is where the next look begins, None = this was the last."""

    moving: tuple[tuple[bytes, str], ...]
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Moved:
    schedule_id: str
    before: Instant
    after: Instant | None


def planned_with(connection: Connection) -> str | None:
    """The tzdata version that planned what is stored; None = nobody has said."""
    return connection.execute(sa.select(facts.c.value).where(facts.c.name == _TZDATA)).scalar_one_or_none()


def set_planned_with(connection: Connection, version: str) -> None:
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = insert(facts).values(name=_TZDATA, value=version)
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": version}))


def look(connection: Connection, known: Plannings, *, now: Instant, after: bytes, looks: int) -> Looked:
    """Of the next `looks` schedules that wait for a moment in the future, those for which it is another one now."""
    uid = positions.c.schedule_uid
    rows = connection.execute(
        sa.select(uid, positions.c.namespace, positions.c.status, positions.c.planning, positions.c.next_due,
                  positions.c.decided_until)
        .where(uid > after, positions.c.status.in_(_PLANNED), positions.c.next_due > now)
        .order_by(uid)
        .limit(looks)
    ).all()  # fmt: skip
    plannings = known.load(connection, [row.planning for row in rows])
    moving = tuple(
        (row.schedule_uid, row.namespace)
        for row in rows
        if _moves(plannings[row.planning], row.schedule_uid, Status(row.status), row.decided_until, row.next_due)
    )
    return Looked(moving, rows[-1].schedule_uid if len(rows) == looks else None)


def _moves(
    planning: Planning | Exception, uid: bytes, status: Status, decided_until: Instant, next_due: Instant
) -> bool:
    if isinstance(planning, Exception):
        return False  # the tick will set it aside when its time comes
    spec = planning.spec
    if status is Status.PAUSED and next_due - spec.jitter_ms * 1_000 <= decided_until:
        return False  # what is shown is an occurrence that the pause overtook; the resume will plan anew
    nominal = spec.next_after(decided_until)
    return nominal is None or spec.due(uid, nominal) != next_due


def move(
    connection: Connection, known: Plannings, uid: bytes, namespace: str, *, now: Instant, because: str
) -> Moved | None:
    """As an edit of the spec: it never fires the past, and what it overtakes is recorded. None if nothing moves.

    What was decided before cannot be recomputed any more, since the old rules are gone: the checkpoint
    says so to audits.
    """
    row = find_by_uid(connection, namespace, uid, lock=True)
    if row is None or row.status not in _PLANNED or row.next_due is None or row.next_due <= now:
        return None  # decided, paused or deleted while we looked; a past time is never moved
    planning = known.load(connection, [row.planning])[row.planning]
    if isinstance(planning, Exception) or not _moves(planning, uid, row.status, row.decided_until, row.next_due):
        return None
    change = lifecycle.edit(planning, planning, uid, row.position(), now=now, spec_changed=True)
    set_checkpoint(connection, uid, sequence=row.next_sequence, decided_until=row.decided_until, now=now)
    events = _events(row, change.superseded, change.position, CommandContext(source="engine", reason=because))
    next_sequence = history.append(connection, uid, namespace, events, now=now)
    position = change.position
    connection.execute(
        sa.update(positions)
        .where(positions.c.schedule_uid == uid)
        .values(
            status=position.status.value,
            next_due=position.next_due,
            decided_until=position.decided_until,
            generation=position.generation,
            next_sequence=next_sequence,
        )
    )
    return Moved(row.schedule_id, row.next_due, position.next_due)


def _events(row: ScheduleRow, overtaken: Missed | None, position: Position, context: CommandContext) -> list[NewEvent]:
    events: list[NewEvent] = []
    if overtaken is not None:
        missed = make_payload(EventType.MISSED, **missed_values(overtaken), command_context=context)
        events.append(NewEvent(row.next_sequence, EventType.MISSED, overtaken.first, overtaken.last, None, missed))
    updated = make_payload(
        EventType.UPDATED,
        changed_fields=[CHANGED_FIELD],
        next_fire_at=None if position.next_due is None else to_rfc3339(position.next_due),
        revision=row.revision,
        generation=position.generation,
        command_context=context,
    )
    events.append(NewEvent(row.next_sequence + len(events), EventType.UPDATED, None, None, None, updated))
    return events
