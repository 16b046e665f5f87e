"""How plans follow a new tzdata: a schedule whose next occurrence moves begins a new generation."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision import lifecycle
from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import CommandContext, EventType
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.store.history.append import Journal
from horarium.store.retention import set_checkpoint
from horarium.store.schedules import positions
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ScheduleRow, find_by_uid
from horarium.store.tables import positions as table

CHANGED_FIELD = "tzdata"
"""What ScheduleUpdated names as changed."""

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


def look(connection: Connection, known: Plannings, *, now: Instant, after: bytes, looks: int) -> Looked:
    """The schedules among the next `looks` that wait for a future time which has changed."""
    uid = table.c.schedule_uid
    rows = connection.execute(
        sa.select(uid, table.c.namespace, table.c.status, table.c.planning, table.c.next_due,
                  table.c.decided_until)
        .where(uid > after, table.c.status.in_(_PLANNED), table.c.next_due > now)
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
    position = change.position
    positions.move(
        connection,
        uid,
        status=position.status,
        next_due=position.next_due,
        decided_until=position.decided_until,
        generation=position.generation,
        next_sequence=_tell(connection, row, change, CommandContext(source="engine", reason=because), now),
    )
    return Moved(row.schedule_id, row.next_due, position.next_due)


def _tell(
    connection: Connection, row: ScheduleRow, change: lifecycle.Change, context: CommandContext, now: Instant
) -> int:
    """The number of the next event."""
    journal, position = Journal(row.next_sequence, now, context), change.position
    journal.missed(change.superseded)
    journal.add(
        EventType.UPDATED,
        changed_fields=[CHANGED_FIELD],
        next_fire_at=None if position.next_due is None else to_rfc3339(position.next_due),
        revision=row.revision,
        generation=position.generation,
    )
    return journal.write(connection, row.schedule_uid, row.namespace)
