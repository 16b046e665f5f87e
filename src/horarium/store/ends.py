"""How a run ends, and what its end sets free: one transaction for the run, its schedule and those that waited.

The position is locked before the run, as the tick does, so that the two never wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, case, func, select, update

from horarium.decision.ending import plan_ending
from horarium.decision.facts import Shared
from horarium.decision.release import ActiveRun, HeldRun, plan_release
from horarium.ids import id_text
from horarium.instant import DAY, SECOND, Instant
from horarium.schedule.event import EventType, RunEventType, final_event
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.reason import Obstacle, dispatch_status
from horarium.schedule.run import FINAL, Origin, RunState, state_after_termination
from horarium.store import approvals
from horarium.store.aftermath import add_history, pause_after_failures, released_payload
from horarium.store.due import Plannings
from horarium.store.facts import add_to_counters, assignee_owner, key_owner, lock_counters, schedule_owner
from horarium.store.jsontext import kept_text
from horarium.store.record import encode
from horarium.store.runs import MAX_ERROR, add_event, write_event
from horarium.store.tables import positions, runs

OPEN = frozenset(RunState) - FINAL
_WORKED = frozenset({RunState.SUCCEEDED, RunState.FAILED})
_OPEN = tuple(sorted(state.value for state in OPEN))
# Of the schedules that wait for one key; the janitor looks at the others.
_MOST_TRIED = 10


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended, as somebody reported it."""

    state: RunState
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None
    cost: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def end_run(
    connection: Connection,
    known: Plannings,
    run_id: bytes,
    end: End,
    *,
    now: Instant,
    epoch: int | None = None,
    only_from: frozenset[RunState] = OPEN,
) -> bool:
    """False if the run had ended already, or if `epoch` names a lease that was lost: nothing has changed.

    `only_from` is for those who looked without a lock: the states in which it must still be.
    """
    schedule_uid = connection.execute(
        select(runs.c.schedule_uid).where(runs.c.run_id == run_id, runs.c.parent_run_id.is_(None))
    ).scalar_one_or_none()
    position = None if schedule_uid is None else lock_position(connection, schedule_uid)
    fence = [] if epoch is None else [runs.c.lease_epoch == epoch]
    row = connection.execute(
        select(runs)
        .where(runs.c.run_id == run_id, runs.c.state.in_(sorted(state.value for state in only_from)), *fence)
        .with_for_update()
    ).one_or_none()
    if row is None:
        return False
    _close(connection, row, end, now)
    if position is not None:
        planning = known.load(connection, [position.planning])[position.planning]
        _count_end(connection, position, row, end, planning, now)
        _pass_on(connection, known, row, now)
        if position.held:
            release(connection, known, row.schedule_uid, now=now)
    return True


def lock_positions(connection: Connection, schedule_uids: Iterable[bytes]) -> None:
    """For a transaction that will end runs of several schedules: positions before all else, in sorted order."""
    wanted = sorted(set(schedule_uids))
    if len(wanted) > 1 and connection.dialect.name == "postgresql":
        uid = positions.c.schedule_uid
        connection.execute(select(uid).where(uid.in_(wanted)).order_by(uid).with_for_update()).all()


def lock_position(connection: Connection, schedule_uid: bytes) -> Any:
    """The row of the position, ours until the transaction ends."""
    return connection.execute(
        select(positions).where(positions.c.schedule_uid == schedule_uid).with_for_update()
    ).one_or_none()


def end_active(
    connection: Connection, known: Plannings, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """Terminate what is active, for `terminate_other`; the caller's plan has counted them out already."""
    ended = 0
    rows = connection.execute(
        select(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(_OPEN),
            runs.c.state != RunState.HELD.value,
        )
        .with_for_update()
    ).all()
    for row in rows:
        if row.run_id in keep:
            continue
        state = state_after_termination(RunState(row.state))
        _close(connection, row, End(state, error="replaced by a newer occurrence", cause="terminate_other"), now)
        _free_counters(connection, row, End(state), now)
        ended += 1
    return ended


def ask_active_to_stop(connection: Connection, schedule_uid: bytes, now: Instant) -> None:
    """For `cancel_other`: the runs are asked; after the grace they are terminated by a release."""
    connection.execute(
        update(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(_OPEN),
            runs.c.state != RunState.HELD.value,
            runs.c.stop_requested_at.is_(None),
        )
        .values(stop_requested_at=now)
    )


def release(connection: Connection, known: Plannings, schedule_uid: bytes, *, now: Instant) -> int:
    """Let held runs go as far as there is room; the caller holds the lock on the position."""
    position = lock_position(connection, schedule_uid)
    if position is None or position.held == 0:
        return 0
    planning = known.load(connection, [position.planning])[position.planning]
    if isinstance(planning, Exception):
        return 0
    rows = connection.execute(
        select(runs.c.run_id, runs.c.nominal, runs.c.ready_at, runs.c.state, runs.c.stop_requested_at).where(
            runs.c.schedule_uid == schedule_uid, runs.c.parent_run_id.is_(None), runs.c.state.in_(_OPEN)
        )
    ).all()
    held = [HeldRun(id_text(row.run_id), row.nominal, row.ready_at) for row in rows if row.state == RunState.HELD]
    active = [ActiveRun(id_text(row.run_id), row.stop_requested_at) for row in rows if row.state != RunState.HELD]
    by_text = {id_text(row.run_id): row.run_id for row in rows}
    plan = plan_release(planning, Status(position.status), held, active, _shared(connection, position, planning), now)
    for text in plan.terminate:
        # Under lock: a claim does not ask for the position, and may be handing it out just now.
        row = connection.execute(select(runs).where(runs.c.run_id == by_text[text]).with_for_update()).one()
        state = state_after_termination(RunState(row.state))
        end = End(state, error="did not stop in time", cause="cancel_other")
        _close(connection, row, end, now)
        _free_counters(connection, row, end, now)
    _let_go(connection, position, planning, [by_text[text] for text in plan.release], len(plan.terminate), now)
    return len(plan.release)


def _pass_on(connection: Connection, known: Plannings, row: Any, now: Instant) -> None:
    """Give the key of a run that has ended to whoever has waited for it longest, whichever schedule's it is.

    A position that another transaction holds is passed over, because waiting for it while we hold the
    key's counter could be a deadlock; the janitor comes by soon.
    """
    if row.concurrency_key is None or row.state == RunState.HELD:
        return
    for uid in _waiting_for_key(connection, row.namespace, row.concurrency_key, now):
        free = select(positions.c.schedule_uid).where(positions.c.schedule_uid == uid).with_for_update(skip_locked=True)
        if connection.execute(free).one_or_none() is not None and release(connection, known, uid, now=now):
            return  # one place became free, one run has it


def _waiting_for_key(connection: Connection, namespace: str, key: str, now: Instant) -> list[bytes]:
    rows = connection.execute(
        select(runs.c.schedule_uid)
        .join(positions, positions.c.schedule_uid == runs.c.schedule_uid)
        .where(
            runs.c.namespace == namespace,
            runs.c.concurrency_key == key,
            runs.c.state == RunState.HELD.value,
            runs.c.ready_at <= now,
            positions.c.status != Status.PAUSED.value,
        )
        .group_by(runs.c.schedule_uid)
        .order_by(func.min(runs.c.nominal), runs.c.schedule_uid)
        .limit(_MOST_TRIED)
    )
    return [each.schedule_uid for each in rows]


# ── small steps ──────────────────────────────────────────────────────────────────────────────────────


def _close(connection: Connection, row: Any, end: End, now: Instant) -> None:
    """`row` is the whole run, under lock."""
    values: dict[str, Any] = {
        "state": end.state.value,
        "finished_at": now,
        "lease_owner": None,
        "lease_until": None,
        # Whoever still works on it has lost his lease and may not answer any more.
        "lease_epoch": row.lease_epoch + 1,
        "error": None if end.error is None else kept_text(end.error, MAX_ERROR),
        "error_class": end.error_class,
        "cause": end.cause,
        "next_event": row.next_event + 1,
    }
    if row.started_at is None and row.deadline is not None and end.state in _WORKED:
        # Answered at once: it began when it was handed out, which is when its time began to run.
        values["started_at"] = row.deadline - row.timeout_seconds * SECOND
    if end.result is not None:
        values["result"] = encode(end.result)
    for name in ("cost", "tokens", "tool_calls"):
        if getattr(end, name) is not None:
            values[name] = getattr(end, name)
    connection.execute(update(runs).where(runs.c.run_id == row.run_id).values(**values))
    payload = {"error": values["error"], "error_class": end.error_class, "cause": end.cause, **end.detail}
    is_step = row.parent_run_id is not None
    write_event(
        connection,
        row.run_id,
        row.next_event,
        final_event(end.state, is_step=is_step),
        now,
        {name: value for name, value in payload.items() if value is not None},
    )


def _count_end(
    connection: Connection, position: Any, row: Any, end: End, planning: Planning | Exception, now: Instant
) -> None:
    was_held = row.state == RunState.HELD
    values: dict[str, Any] = {
        "active": position.active - (0 if was_held else 1),
        "held": position.held - (1 if was_held else 0),
        "last_completed_at": now,
        "last_completed_run_id": row.run_id,
    }
    if not isinstance(planning, Exception):
        ending = plan_ending(planning, Status(position.status), position.failures_in_a_row, end.state)
        values["failures_in_a_row"] = ending.failures_in_a_row
        if ending.failed:
            said = None if end.error is None else kept_text(end.error, MAX_ERROR)
            values |= {"failures_count": position.failures_count + 1, "last_error": said, "last_error_at": now}
        if end.state is RunState.LAUNCH_FAILED:
            values["last_dispatch_status"] = dispatch_status(Obstacle.LAUNCH_FAILED)
        if ending.pause_reason is not None:
            values |= pause_after_failures(connection, position, planning, ending.pause_reason, now)
    connection.execute(update(positions).where(positions.c.schedule_uid == position.schedule_uid).values(**values))
    _free_counters(connection, row, end, now)


def _free_counters(connection: Connection, row: Any, end: End, now: Instant) -> None:
    changes: dict[tuple[str, str, int], int] = {}
    if row.concurrency_key is not None and row.state != RunState.HELD:
        changes["key", key_owner(row.namespace, row.concurrency_key), 0] = -1
    # What a run cost takes the place of what was reserved for it on the day of its birth.
    spent = (row.cost if end.cost is None else end.cost) - row.reserved
    if spent and row.schedule_uid is not None:
        day = row.created_at // DAY
        changes["spent", schedule_owner(row.schedule_uid), day] = spent
        if row.assignee is not None:
            changes["spent", assignee_owner(row.namespace, row.assignee), day] = spent
    add_to_counters(connection, changes)


def _shared(connection: Connection, position: Any, planning: Planning) -> Shared:
    shared = Shared()
    if planning.concurrency_key is not None:
        counter = ("key", key_owner(position.namespace, planning.concurrency_key), 0)
        shared.active_by_key[planning.concurrency_key] = lock_counters(connection, [counter])[counter]
    return shared


def _let_go(
    connection: Connection, position: Any, planning: Planning, run_ids: list[bytes], terminated: int, now: Instant
) -> None:
    sequence, fires = position.next_sequence, position.fires_count
    taken = Counter[str]()  # by the run's own key, which its end will give back: an edit may have changed ours
    # Whether it needs a yes was settled at its birth: an edit since then must not let it slip through.
    waits = and_(runs.c.needs_approval, runs.c.approval_id.is_(None))
    state = case((waits, RunState.AWAITING_APPROVAL.value), else_=RunState.READY.value)
    for run_id in run_ids:
        fires += 1
        row = connection.execute(
            update(runs)
            .where(runs.c.run_id == run_id)
            .values(state=state, trigger_number=fires, ready_at=now)
            .returning(*_RELEASED, runs.c.concurrency_key)
        ).one()
        if row.concurrency_key is not None:
            taken[row.concurrency_key] += 1
        if row.state == RunState.AWAITING_APPROVAL:
            approvals.request(connection, [run_id], now)
        add_event(connection, run_id, RunEventType.RUN_RELEASED, now, {"trigger_number": fires})
        payload = released_payload(position, planning, run_id, row, fires)
        nominal = None if row.origin == Origin.MANUAL else row.nominal
        add_history(connection, position, sequence, EventType.TRIGGERED, nominal, run_id, payload, now)
        sequence += 1
    add_to_counters(connection, {("key", key_owner(position.namespace, key), 0): count for key, count in taken.items()})
    connection.execute(
        update(positions)
        .where(positions.c.schedule_uid == position.schedule_uid)
        .values(
            held=positions.c.held - len(run_ids),
            active=positions.c.active + len(run_ids) - terminated,
            fires_count=fires,
            next_sequence=sequence,
            last_fired_at=now if run_ids else position.last_fired_at,
            last_run_id=run_ids[-1] if run_ids else position.last_run_id,
        )
    )


_RELEASED = [runs.c.nominal, runs.c.due, runs.c.origin, runs.c.revision, runs.c.rotation_index, runs.c.state]


def waiting_schedules(connection: Connection, now: Instant, limit: int, *, after: bytes = b"") -> list[bytes]:
    """Schedules with a held run whose time to be looked at has come, or whose grace to stop is over.

    In the order of their uids, beginning after one: many that must go on waiting never hide the others.
    """
    uid = runs.c.schedule_uid
    due = select(uid).where(uid > after, runs.c.state == RunState.HELD.value, runs.c.ready_at <= now)
    asked = select(uid).where(uid > after, runs.c.stop_requested_at.is_not(None), runs.c.state.in_(_OPEN))
    either = due.union(asked).subquery()
    rows = connection.execute(select(either.c.schedule_uid).order_by(either.c.schedule_uid).limit(limit))
    return [row.schedule_uid for row in rows]
