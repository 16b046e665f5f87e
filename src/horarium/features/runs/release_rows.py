"""SQL that releases held runs in their turn as capacity allows, and passes a concurrency key on.

However many runs are held, a release reads and changes a bounded number of rows: it happens at every end of a run,
under the lock of the position. The next end takes up the rest, or the janitor. The run that has waited longest gets
the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, TextClause, bindparam, case, func, or_, select, text, update

from horarium.core.decision.decide import ActiveRun, BufferedRun, plan_release
from horarium.core.decision.facts import SharedFacts
from horarium.core.decision.run_policies import under_queue, under_waiting
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, RunEventType, RunState, Status
from horarium.core.lifecycle.live_run import NO_RULES
from horarium.core.lifecycle.outcome import End, Terminated
from horarium.core.lifecycle.react import react
from horarium.core.policy.approval import WhileWaiting
from horarium.features.agents.policy_rows import capacity_of
from horarium.features.approvals import request_rows
from horarium.features.history.rows import Journal
from horarium.features.runs import end_rows, update_rows
from horarium.features.runs.count_rows import waiting_roots
from horarium.features.runs.end_rows import ReleasedRun, end_below, tell_released
from horarium.features.runs.update_rows import write_changes
from horarium.features.runs.work_rows import RunWork, lock_works
from horarium.features.schedules import write_rows
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import LockedPosition
from horarium.instant import Instant
from horarium.platform.database.run_states import TO_STOP
from horarium.platform.database.statements import add_to_counters, key_owner, lock_counters, select_by_ids
from horarium.platform.database.tables import positions as table
from horarium.platform.database.tables import runs
from horarium.platform.ids import id_text

# Of the schedules that wait for one key; the janitor looks at the others.
_MOST_TRIED = 10
# Let go, or terminated, in one transaction.
MOST_CHANGED = 200
# Looked at to find them: those in front may have been spread over the hours to come.
_MOST_LOOKED_AT = 1_000

# As text and not as parameters, as TO_STOP: see `states.py`.
_HELD = "runs.state = 'held'"
_BACKFILL = Origin.BACKFILL.value


def release(connection: Connection, known: Plannings, schedule_uid: bytes, *, now: Instant) -> int:
    """Let held runs go as far as there is room; the caller holds the lock on the position."""
    position = write_rows.lock_position(connection, schedule_uid)
    if position is None or position.held == 0:
        return 0
    planning = known.load(connection, [position.planning])[position.planning]
    if isinstance(planning, Exception):
        return 0
    planning = _under_others(connection, position.namespace, planning)
    asked = _stop_requested(connection, schedule_uid)
    waiting = 0
    if planning.while_waiting is not WhileWaiting.COUNT:
        waiting = waiting_roots(connection, [schedule_uid]).get(schedule_uid, 0)
    others = max(0, position.active - len(asked) - waiting)
    status = Status(position.status)
    held = _held(connection, schedule_uid, status, now, _most_usable(planning, others))
    ids = {id_text(run_id): run_id for run_id in (*asked, *held)}
    plan = plan_release(
        planning,
        status,
        [*held.values()],
        [*asked.values(), *_others(planning, others)],
        _shared(connection, position, planning),
        now,
    )
    _terminate(connection, [ids[each] for each in plan.terminate], now)
    released, gone = [ids[each] for each in plan.release], len(plan.terminate)
    if planning.while_waiting is WhileWaiting.SUPERSEDE and released and waiting:
        gone += end_rows.end_waiting(connection, schedule_uid, now=now)
    _let_go(connection, position, planning, released, gone, now)
    return len(released)


def _under_others(connection: Connection, namespace: str, planning: Planning) -> Planning:
    """With what its assignment says of room, and whoever works of runs that wait, where it says nothing itself."""
    if planning.assignment is None and planning.assigned is None:
        return planning
    queue, waiting = capacity_of(connection, namespace, planning.assigned, planning.assignment)
    if queue is not None:
        planning = under_queue(planning, queue)
    return under_waiting(planning, waiting if planning.while_waiting is WhileWaiting.COUNT else None)


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def _stop_requested(connection: Connection, schedule_uid: bytes) -> dict[bytes, ActiveRun]:
    """Active root runs that somebody wants stopped; of the others only the number counts."""
    rows = connection.execute(
        select(runs.c.run_id, runs.c.stop_requested_at)
        .where(runs.c.schedule_uid == schedule_uid, text(TO_STOP), runs.c.parent_run_id.is_(None))
        .order_by(runs.c.run_id)
        .limit(MOST_CHANGED)
    )
    return {run_id: ActiveRun(id_text(run_id), asked_at) for run_id, asked_at in rows}


def _held(
    connection: Connection, schedule_uid: bytes, status: Status, now: Instant, most: int
) -> dict[bytes, BufferedRun]:
    """The oldest buffered runs that may start next: they are due, and no stop was requested."""
    columns = (runs.c.run_id, runs.c.nominal, runs.c.ready_at, runs.c.stop_requested_at, runs.c.origin)
    mine: list[ColumnElement[bool] | TextClause] = [runs.c.schedule_uid == schedule_uid, text(_HELD)]
    if status is Status.PAUSED:
        mine.append(runs.c.origin == _BACKFILL)
    oldest = (
        select(*columns).where(*mine).order_by(runs.c.nominal, runs.c.run_id).limit(_MOST_LOOKED_AT).subquery("oldest")
    )
    usable = (oldest.c.ready_at <= now, oldest.c.stop_requested_at.is_(None))
    # As `HeldRun.turn`: of more than are wanted, the right ones.
    is_backfill = oldest.c.origin == _BACKFILL
    turn = (case((is_backfill, 0), else_=1), case((is_backfill, oldest.c.run_id)), oldest.c.nominal, oldest.c.run_id)
    first = select(oldest.c.run_id, oldest.c.nominal, oldest.c.ready_at, oldest.c.origin).where(*usable)
    rows = connection.execute(first.order_by(*turn).limit(most))
    return {
        run_id: BufferedRun(id_text(run_id), nominal, ready_at, origin == _BACKFILL)
        for run_id, nominal, ready_at, origin in rows
    }


def _most_usable(planning: Planning, others: int) -> int:
    """As many as would find room if all that were asked to stop ended now; one at least, who waits for that."""
    limits = [MOST_CHANGED]
    if planning.while_waiting is WhileWaiting.SUPERSEDE:
        limits.append(1)  # of several at once each would ask a question of its own
    if planning.overlap.capacity is not None:
        limits.append(planning.overlap.capacity - others)
    if planning.concurrency_key is not None:
        limits.append(planning.concurrency_limit)
    return max(1, min(limits))


def _others(planning: Planning, count: int) -> list[ActiveRun]:
    """Active runs that nobody asked to stop: beyond the capacity their number says nothing."""
    capacity = planning.overlap.capacity
    return [ActiveRun("")] * min(count, 1 if capacity is None else capacity)


def _shared(connection: Connection, position: LockedPosition, planning: Planning) -> SharedFacts:
    shared = SharedFacts()
    if planning.concurrency_key is not None:
        counter = ("key", key_owner(position.namespace, planning.concurrency_key), 0)
        shared.active_by_key[planning.concurrency_key] = lock_counters(connection, [counter])[counter]
    return shared


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────


_LOCKED = f"SELECT {', '.join(ReleasedRun._fields)} FROM runs WHERE run_id"


def _locked(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, ReleasedRun]:
    """In sorted order. A claim does not ask for the position, and may be handing one out just now."""
    tail = "ORDER BY run_id FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    found = map(ReleasedRun._make, select_by_ids(connection, _LOCKED, sorted(run_ids), tail))
    return {run.run_id: run for run in found}


def _terminate(connection: Connection, run_ids: Sequence[bytes], now: Instant) -> None:
    stopped = Terminated("did not stop in time", "cancel_other")
    judged = [(run, react(run, stopped, NO_RULES, now)) for run in lock_works(connection, run_ids)]
    ended = [(run, end) for run, end in judged if isinstance(end, End)]
    write_changes(connection, end_below(connection, ended, now).ended, now)


def _let_go(
    connection: Connection,
    position: LockedPosition,
    planning: Planning,
    run_ids: Sequence[bytes],
    terminated: int,
    now: Instant,
) -> None:
    held = _locked(connection, run_ids)
    released = [(held[run_id], position.fires_count + 1 + place) for place, run_id in enumerate(run_ids)]
    journal = Journal(position.next_sequence, now)
    if released:
        _write_released(connection, released, now)
        for run, number in released:
            tell_released(journal, position.schedule_id, planning, run, number)
    # By the run's own key, which its end will give back: an edit may have changed ours.
    taken = Counter(run.concurrency_key for run, _ in released if run.concurrency_key is not None)
    add_to_counters(connection, {("key", key_owner(position.namespace, key), 0): count for key, count in taken.items()})
    write_rows.move_position(
        connection,
        position.schedule_uid,
        held=position.held - len(released),
        active=position.active + len(released) - terminated,
        fires_count=position.fires_count + len(released),
        next_sequence=journal.write(connection, position.schedule_uid, position.namespace),
        last_fired_at=now if released else position.last_fired_at,
        last_run_id=run_ids[-1] if released else position.last_run_id,
    )


def _write_released(connection: Connection, released: Sequence[tuple[ReleasedRun, int]], now: Instant) -> None:
    """The runs and their events, for all of them together."""
    # Whether it needs a yes was settled at its birth: an edit since then must not let it slip through.
    waits = [run.run_id for run, _ in released if run.needs_approval and run.approval_id is None]
    changes = []
    for run, number in released:
        state = RunState.AWAITING_APPROVAL if run.run_id in waits else RunState.READY
        changes.append({"id": run.run_id, "new_state": state.value, "number": number, "at": now})
    connection.execute(_RELEASE, changes)
    update_rows.append_events(
        connection,
        [
            (run.run_id, run.next_event, RunEventType.RUN_RELEASED, {"trigger_number": number})
            for run, number in released
        ],
        now=now,
    )
    request_rows.request(connection, waits, now)


_RELEASE = (
    update(runs)
    .where(runs.c.run_id == bindparam("id"))
    .values(
        state=bindparam("new_state"),
        trigger_number=bindparam("number"),
        ready_at=bindparam("at"),
        next_event=runs.c.next_event + 1,
    )
)


# ── who is next ──────────────────────────────────────────────────────────────────────────────────────


def pass_on(connection: Connection, known: Plannings, run: RunWork, now: Instant) -> None:
    """Give the key of a run that has ended to whoever has waited for it longest, whichever schedule's it is.

    A position that another transaction holds is passed over, because waiting for it while we hold the
    key's counter could be a deadlock; the janitor comes by soon.
    """
    if run.concurrency_key is None or run.state == RunState.HELD:
        return
    for uid in _waiting_for_key(connection, run.namespace, run.concurrency_key, now):
        if write_rows.try_lock_position(connection, uid) and release(connection, known, uid, now=now):
            return  # one place became free, one run has it


def _waiting_for_key(connection: Connection, namespace: str, key: str, now: Instant) -> list[bytes]:
    oldest = (
        select(runs.c.schedule_uid, runs.c.nominal, runs.c.ready_at, runs.c.origin)
        .where(runs.c.namespace == namespace, runs.c.concurrency_key == key, text(_HELD))
        .order_by(runs.c.nominal)
        .limit(_MOST_LOOKED_AT)
        .subquery("oldest")
    )
    rows = connection.execute(
        select(oldest.c.schedule_uid)
        .join(table, table.c.schedule_uid == oldest.c.schedule_uid)
        .where(oldest.c.ready_at <= now, or_(table.c.status != Status.PAUSED.value, oldest.c.origin == _BACKFILL))
        .group_by(oldest.c.schedule_uid)
        .order_by(func.min(oldest.c.nominal), oldest.c.schedule_uid)
        .limit(_MOST_TRIED)
    )
    return [each.schedule_uid for each in rows]


def waiting_schedules(connection: Connection, now: Instant, limit: int, *, after: bytes = b"") -> list[bytes]:
    """Schedules with a held run whose time to be looked at has come, or which waits for one that was asked to stop.

    In the order of their uids, beginning after one: many that must go on waiting never hide the others. The
    index is asked for one schedule after the other, however many runs each of them holds.
    """
    values = {"after": after, "now": now, "limit": limit}
    return sorted(connection.execute(_WAITING, values).scalars())


def next_releases(connection: Connection, after: Instant) -> dict[bytes, Instant]:
    """When the next held run of each schedule may go, of those that may go only after an instant.

    As `waiting_schedules`, it asks the index for one schedule after the other.
    """
    return {uid: at for uid, at in connection.execute(_NEXT, {"after": b"", "since": after}) if at is not None}


_HOLDING = f"""
WITH RECURSIVE waiting (uid) AS (
  SELECT * FROM (
    SELECT runs.schedule_uid FROM runs WHERE {_HELD} AND runs.schedule_uid > :after
    ORDER BY runs.schedule_uid LIMIT 1
  ) AS first
  UNION ALL
  SELECT (
    SELECT runs.schedule_uid FROM runs WHERE {_HELD} AND runs.schedule_uid > waiting.uid
    ORDER BY runs.schedule_uid LIMIT 1
  ) FROM waiting WHERE waiting.uid IS NOT NULL
)
"""
_OLDEST = f"""(
  SELECT runs.ready_at FROM runs WHERE {_HELD} AND runs.schedule_uid = waiting.uid
  ORDER BY runs.nominal LIMIT {_MOST_LOOKED_AT}
) AS oldest"""
_NEXT = text(f"""{_HOLDING}
SELECT uid, (SELECT min(oldest.ready_at) FROM {_OLDEST} WHERE oldest.ready_at > :since)
FROM waiting WHERE uid IS NOT NULL
""")
_WAITING = text(f"""{_HOLDING}
SELECT uid FROM waiting WHERE uid IS NOT NULL AND (
  EXISTS (SELECT 1 FROM {_OLDEST} WHERE oldest.ready_at <= :now)
  OR EXISTS (
    SELECT 1 FROM runs
    WHERE runs.schedule_uid = waiting.uid AND {TO_STOP} AND runs.parent_run_id IS NULL
  )
)
LIMIT :limit
""")
