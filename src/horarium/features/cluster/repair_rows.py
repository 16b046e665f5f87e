"""SQL that corrects counts, lost plans, plans under new zone rules, and waits that a wrong clock set.

Every count moves in the transaction that moves the runs, so a difference means that a row was changed by hand or
restored, or a bug. A difference is checked again under the lock.

A schedule whose next occurrence moves with a new tzdata begins a new generation.

After the clock was set back, a lease that a dead process took on the wrong time would last as long as the clock was
ahead, and so would the pause of a retry. Decided occurrences stay decided.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision import decide
from horarium.core.document.planning import Planning
from horarium.core.document.states import CommandContext, EventType, Position, RunState, Status
from horarium.features.history.rows import Journal
from horarium.features.runs.retention_rows import set_checkpoint
from horarium.features.schedules import write_rows
from horarium.features.schedules.decision_rows import park
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import ScheduleRow, find_by_uid
from horarium.features.webhooks.delivery_rows import LEASE_SECONDS
from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.platform.database.run_states import HANDED_OUT_LIST, OPEN_ROOT
from horarium.platform.database.statements import lock_counters
from horarium.platform.database.tables import counters, runs, subscriptions
from horarium.platform.database.tables import positions as table

_HELD = RunState.HELD.value
_OPEN_ROOT = sa.text(OPEN_ROOT)
_IS_HELD = sa.case((runs.c.state == _HELD, 1), else_=0)
# As `counters.key_owner` writes it.
_key_of_run = sa.literal("key:") + runs.c.namespace + " " + runs.c.concurrency_key


@dataclass(frozen=True, slots=True)
class Count:
    """Root runs of a schedule that have not ended."""

    active: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Recounted:
    schedule_uid: bytes
    namespace: str
    schedule_id: str
    before: Count
    after: Count


@dataclass(frozen=True, slots=True)
class Replanned:
    """A schedule that had lost its plan, and the status that it has now."""

    namespace: str
    schedule_id: str
    status: Status


@dataclass(frozen=True, slots=True)
class WrongCounts:
    """`after` is where the next look begins, None = this was the last."""

    uids: tuple[bytes, ...]
    after: bytes | None


# ── runs of a schedule ───────────────────────────────────────────────────────────────────────────────


def wrong_counts(connection: Connection, *, after: bytes, looks: int) -> WrongCounts:
    """The schedules among the next `looks` whose position has wrong counts of runs."""
    uid = table.c.schedule_uid
    columns = sa.select(uid, table.c.active, table.c.held)
    rows = connection.execute(columns.where(uid > after).order_by(uid).limit(looks)).all()
    if not rows:
        return WrongCounts((), None)
    inside = sa.and_(runs.c.schedule_uid > after, runs.c.schedule_uid <= rows[-1].schedule_uid)
    counted = _count(connection, inside)
    wrong = tuple(
        row.schedule_uid for row in rows if Count(row.active, row.held) != counted.get(row.schedule_uid, Count())
    )
    return WrongCounts(wrong, rows[-1].schedule_uid if len(rows) == looks else None)


def recount(connection: Connection, uid: bytes) -> Recounted | None:
    """None if the counts are right, now that nobody can move them."""
    position = write_rows.lock_position(connection, uid)
    if position is None:
        return None
    before = Count(position.active, position.held)
    after = count_open(connection, uid)
    if before == after:
        return None
    write_rows.move_position(connection, uid, active=after.active, held=after.held)
    return Recounted(uid, position.namespace, position.schedule_id, before, after)


def count_open(connection: Connection, uid: bytes) -> Count:
    """Correct counts for the position of a schedule."""
    return _count(connection, runs.c.schedule_uid == uid).get(uid, Count())


def _count(connection: Connection, which: sa.ColumnElement[bool]) -> dict[bytes, Count]:
    rows = connection.execute(
        sa.select(runs.c.schedule_uid, sa.func.count().label("open"), sa.func.sum(_IS_HELD).label("held"))
        .where(_OPEN_ROOT, which)
        .group_by(runs.c.schedule_uid)
    )
    return {row.schedule_uid: Count(row.open - int(row.held), int(row.held)) for row in rows}


# ── holders of a key ─────────────────────────────────────────────────────────────────────────────────

_HOLDS_KEY = sa.and_(
    _OPEN_ROOT, runs.c.state != _HELD, runs.c.schedule_uid.is_not(None), runs.c.concurrency_key.is_not(None)
)


def wrong_key_counts(connection: Connection) -> list[str]:
    """Owners of the counters that differ from the runs that hold the key."""
    return sorted(key_differences(connection))


def key_differences(connection: Connection) -> dict[str, tuple[int, int]]:
    """By owner of a counter what it says and how many hold the key, where that differs.

    Costs as much as runs are open.
    """
    holders = (
        sa.select(_key_of_run.label("owner"), sa.func.count().label("holders")).where(_HOLDS_KEY).group_by(_key_of_run)
    )
    there = {row.owner: row.holders for row in connection.execute(holders)}
    rows = connection.execute(sa.select(counters.c.owner, counters.c.value).where(counters.c.kind == "key"))
    said = {row.owner: row.value for row in rows}
    both = {owner: (said.get(owner, 0), there.get(owner, 0)) for owner in there.keys() | said.keys()}
    return {owner: numbers for owner, numbers in both.items() if numbers[0] != numbers[1]}


def recount_key(connection: Connection, owner: str) -> tuple[int, int] | None:
    """Correct the counter; return its old and new values, or None if it was right.

    The counter is locked. A transaction that changes a holder either adds its part later to this count, or has
    committed and is counted.
    """
    counter = ("key", owner, 0)
    before = lock_counters(connection, [counter])[counter]
    holders = sa.select(sa.func.count()).select_from(runs).where(_HOLDS_KEY, _key_of_run == owner)
    after = int(connection.execute(holders).scalar_one())
    if before == after:
        return None
    connection.execute(
        sa.update(counters).where(counters.c.kind == "key", counters.c.owner == owner).values(value=after)
    )
    return before, after


# ── lost plans ───────────────────────────────────────────────────────────────────────────────────────


def unplanned(connection: Connection, limit: int) -> list[bytes]:
    """Active schedules that no tick will ever see."""
    statement = sa.select(table.c.schedule_uid).where(table.c.status == Status.ACTIVE.value, table.c.next_due.is_(None))
    return list(connection.execute(statement.limit(limit)).scalars())


def plan_again(connection: Connection, known: Plannings, uid: bytes, now: Instant) -> Replanned | None:
    """Plan on from the last decision, so that nothing is dropped.

    None if there is nothing to mend. What cannot be planned is set aside as broken.
    """
    row = write_rows.lock_position(connection, uid)
    if row is None or row.status != Status.ACTIVE.value or row.next_due is not None:
        return None
    planning = known.load(connection, [row.planning])[row.planning]
    if isinstance(planning, Exception):
        park(connection, uid, error=str(planning), error_class=type(planning).__name__, now=now)
        return Replanned(row.namespace, row.schedule_id, Status.BROKEN)
    position = Position(row.decided_until, None, Status.ACTIVE, row.generation)
    planned = decide.replan(planning.spec, uid, position, row.decided_until)
    write_rows.move_position(connection, uid, status=planned.status, next_due=planned.next_due)
    return Replanned(row.namespace, row.schedule_id, planned.status)


CHANGED_FIELD = "tzdata"
"""What ScheduleUpdated names as changed."""

_PLANNED = (Status.ACTIVE.value, Status.PAUSED.value)


@dataclass(frozen=True, slots=True)
class LookedAtPlans:
    """Schedules that move, with their namespaces; `after` is where the next look begins, None = this was the last."""

    moving: tuple[tuple[bytes, str], ...]
    after: bytes | None


@dataclass(frozen=True, slots=True)
class MovedPlan:
    schedule_id: str
    before: Instant
    after: Instant | None


def look_at_plans(connection: Connection, known: Plannings, *, now: Instant, after: bytes, looks: int) -> LookedAtPlans:
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
    return LookedAtPlans(moving, rows[-1].schedule_uid if len(rows) == looks else None)


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


def move_plan(
    connection: Connection, known: Plannings, uid: bytes, namespace: str, *, now: Instant, because: str
) -> MovedPlan | None:
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
    change = decide.edit_position(planning, planning, uid, row.position(), now=now, spec_changed=True)
    set_checkpoint(connection, uid, sequence=row.next_sequence, decided_until=row.decided_until, now=now)
    position = change.position
    write_rows.move_position(
        connection,
        uid,
        status=position.status,
        next_due=position.next_due,
        decided_until=position.decided_until,
        generation=position.generation,
        next_sequence=_tell(connection, row, change, CommandContext(source="engine", reason=because), now),
    )
    return MovedPlan(row.schedule_id, row.next_due, position.next_due)


def _tell(
    connection: Connection, row: ScheduleRow, change: decide.PositionEdit, context: CommandContext, now: Instant
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


MOST_LEASE_SECONDS = 30
"""No setting allows a longer lease of a run."""

_NOTED = "COALESCE((SELECT max(recorded_at) FROM run_events WHERE run_events.run_id = runs.run_id), created_at)"
# As long after the present as it was after the moment at which it was written.
_WAITING = sa.text(
    f"UPDATE runs SET ready_at = ready_at - ({_NOTED} - :now) "
    f"WHERE state IN ('ready', 'held') AND ready_at > :now AND {_NOTED} > :now"
)
# A run in the hands of its target is only asked how it is: too early does no harm.
_POLLED = sa.text(
    "UPDATE runs SET ready_at = :now WHERE state IN ('running', 'queued') AND lease_until IS NULL AND ready_at > :now"
)
_TIMED = sa.text(
    "UPDATE runs SET deadline = deadline - (started_at - :now), ends_by = ends_by - (started_at - :now), "
    f"started_at = :now WHERE state IN {HANDED_OUT_LIST} AND started_at > :now"
)


def shorten_waits(connection: Connection, now: Instant) -> None:
    """Change each time that the wrong clock has written into one counted from now."""
    longest = now + MOST_LEASE_SECONDS * SECOND
    connection.execute(sa.update(runs).where(runs.c.lease_until > longest).values(lease_until=longest))
    for statement in (_WAITING, _POLLED, _TIMED):
        connection.execute(statement, {"now": now})
    longest = now + LEASE_SECONDS * SECOND
    held = sa.update(subscriptions).where(subscriptions.c.lease_until > longest)
    connection.execute(held.values(lease_until=longest))
    failed = sa.update(subscriptions).where(subscriptions.c.last_error_at > now, subscriptions.c.retry_at.is_not(None))
    shifted = subscriptions.c.retry_at - (subscriptions.c.last_error_at - now)
    connection.execute(failed.values(retry_at=shifted, last_error_at=now))
