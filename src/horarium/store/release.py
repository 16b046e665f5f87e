"""How held runs are let go: as far as there is room, the oldest first, and a key goes to whoever waited longest."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import Connection, and_, case, func, select, update

from horarium.decision.facts import Shared
from horarium.decision.release import ActiveRun, HeldRun, plan_release
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.life.change import End
from horarium.life.event import Terminated
from horarium.life.react import NO_RULES, react
from horarium.schedule.event import EventType, RunEventType
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import Origin, RunState
from horarium.store import approvals
from horarium.store.aftermath import add_history, released_payload
from horarium.store.closing import OPEN_STATES, close
from horarium.store.due import Plannings
from horarium.store.facts import add_to_counters, key_owner, lock_counters
from horarium.store.runs import add_event
from horarium.store.tables import positions, runs
from horarium.store.work import lock_work

# Of the schedules that wait for one key; the janitor looks at the others.
_MOST_TRIED = 10


def lock_position(connection: Connection, schedule_uid: bytes) -> Any:
    """The row of the position, ours until the transaction ends."""
    return connection.execute(
        select(positions).where(positions.c.schedule_uid == schedule_uid).with_for_update()
    ).one_or_none()


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
            runs.c.schedule_uid == schedule_uid, runs.c.parent_run_id.is_(None), runs.c.state.in_(OPEN_STATES)
        )
    ).all()
    held = [HeldRun(id_text(row.run_id), row.nominal, row.ready_at) for row in rows if row.state == RunState.HELD]
    active = [ActiveRun(id_text(row.run_id), row.stop_requested_at) for row in rows if row.state != RunState.HELD]
    by_text = {id_text(row.run_id): row.run_id for row in rows}
    plan = plan_release(planning, Status(position.status), held, active, _shared(connection, position, planning), now)
    for text in plan.terminate:
        # Under lock: a claim does not ask for the position, and may be handing it out just now.
        run = lock_work(connection, by_text[text])
        end = react(run, Terminated("did not stop in time", "cancel_other"), NO_RULES, now)
        assert isinstance(end, End)  # it was open just now, and the position is ours
        close(connection, [(run, end)], now)
    _let_go(connection, position, planning, [by_text[text] for text in plan.release], len(plan.terminate), now)
    return len(plan.release)


def pass_on(connection: Connection, known: Plannings, row: Any, now: Instant) -> None:
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
    asked = select(uid).where(uid > after, runs.c.stop_requested_at.is_not(None), runs.c.state.in_(OPEN_STATES))
    either = due.union(asked).subquery()
    rows = connection.execute(select(either.c.schedule_uid).order_by(either.c.schedule_uid).limit(limit))
    return [row.schedule_uid for row in rows]
