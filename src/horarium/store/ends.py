"""How runs end, and what an end sets free: one transaction for the runs, their schedules and those that waited.

Any number of ends cost a few statements; what waits for a place or a key is then let go one by one. The
positions are locked before the runs, as the tick does, so that the two never wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from horarium.decision.ending import plan_ending
from horarium.instant import Instant
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.reason import Obstacle, dispatch_status
from horarium.schedule.run import FINAL, RunState, state_after_termination
from horarium.store.aftermath import pause_after_failures
from horarium.store.closing import OPEN_STATES, End, close
from horarium.store.due import Plannings
from horarium.store.release import pass_on, release
from horarium.store.tables import positions, runs

OPEN = frozenset(RunState) - FINAL


class Asked(NamedTuple):
    """A run that somebody wants ended; `epoch` is the lease under which he says so, None = nobody's."""

    run_id: bytes
    end: End
    epoch: int | None = None


def end_run(
    connection: Connection,
    known: Plannings,
    run_id: bytes,
    end: End,
    *,
    now: Instant,
    only_from: frozenset[RunState] = OPEN,
) -> bool:
    """False if the run had ended already: nothing has changed."""
    return bool(end_runs(connection, known, [Asked(run_id, end)], now=now, only_from=only_from))


def end_runs(
    connection: Connection,
    known: Plannings,
    asked: Sequence[Asked],
    *,
    now: Instant,
    only_from: frozenset[RunState] = OPEN,
) -> list[Asked]:
    """Those that ended now; not those that had ended already, nor those whose lease was lost.

    `only_from` is for those who looked without a lock: the states in which a run must still be.
    """
    if not asked:
        return []
    places = _lock_positions(connection, [each.run_id for each in asked])
    rows = _lock_runs(connection, [each.run_id for each in asked], only_from)
    ended: list[tuple[Asked, Any]] = []
    for each in asked:
        row = rows.get(each.run_id)
        if row is not None and each.epoch in (None, row.lease_epoch):
            ended.append((each, rows.pop(each.run_id)))
    close(connection, [(row, each.end) for each, row in ended], now)
    _count(connection, known, places, [(row, each.end) for each, row in ended], now)
    for _, row in ended:
        if row.schedule_uid in places:
            pass_on(connection, known, row, now)
    for uid, place in places.items():
        if place.held:
            release(connection, known, uid, now=now)
    return [each for each, _ in ended]


def _lock_positions(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, Any]:
    """Those whose root runs these are, in sorted order, so that two transactions never wait for each other."""
    uids = select(runs.c.schedule_uid).where(runs.c.run_id.in_(run_ids), runs.c.parent_run_id.is_(None))
    wanted = select(positions).where(positions.c.schedule_uid.in_(uids)).order_by(positions.c.schedule_uid)
    rows = connection.execute(wanted.with_for_update()).mappings()
    return {row["schedule_uid"]: SimpleNamespace(**row) for row in rows}


def _lock_runs(connection: Connection, run_ids: Sequence[bytes], only_from: Iterable[RunState]) -> dict[bytes, Any]:
    states = sorted(state.value for state in only_from)
    wanted = select(runs).where(runs.c.run_id.in_(run_ids), runs.c.state.in_(states)).order_by(runs.c.run_id)
    return {row.run_id: row for row in connection.execute(wanted.with_for_update())}


def end_active(
    connection: Connection, known: Plannings, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """Terminate what is active, for `terminate_other`; the caller's plan has counted them out already."""
    rows = connection.execute(
        select(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(OPEN_STATES),
            runs.c.state != RunState.HELD.value,
        )
        .with_for_update()
    ).all()
    ended = [(row, _replaced(row)) for row in rows if row.run_id not in keep]
    close(connection, ended, now)
    return len(ended)


def _replaced(row: Any) -> End:
    state = state_after_termination(RunState(row.state))
    return End(state, error="replaced by a newer occurrence", cause="terminate_other")


def ask_active_to_stop(connection: Connection, schedule_uid: bytes, now: Instant) -> None:
    """For `cancel_other`: the runs are asked; after the grace they are terminated by a release."""
    connection.execute(
        update(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(OPEN_STATES),
            runs.c.state != RunState.HELD.value,
            runs.c.stop_requested_at.is_(None),
        )
        .values(stop_requested_at=now)
    )


# ── counting on the schedule ─────────────────────────────────────────────────────────────────────────


def _count(
    connection: Connection,
    known: Plannings,
    places: Mapping[bytes, Any],
    ended: Sequence[tuple[Any, End]],
    now: Instant,
) -> None:
    """Several ends of one schedule are counted in turn: the third failure in a row is the third."""
    of_schedules = [(places[row.schedule_uid], row, end) for row, end in ended if _is_counted(row, places)]
    if not of_schedules:
        return
    plannings = known.load(connection, {place.planning for place, _, _ in of_schedules})
    for place, row, end in of_schedules:
        vars(place).update(_counted(connection, place, row, end, plannings[place.planning], now))
    moved = {place.schedule_uid: place for place, _, _ in of_schedules}
    connection.execute(
        _MOVE, [{"uid": uid, **{f"new_{name}": getattr(moved[uid], name) for name in _MOVED}} for uid in sorted(moved)]
    )


def _is_counted(row: Any, places: Mapping[bytes, Any]) -> bool:
    return row.parent_run_id is None and row.schedule_uid in places


def _counted(
    connection: Connection, place: Any, row: Any, end: End, planning: Planning | Exception, now: Instant
) -> dict[str, Any]:
    """What has changed on the position; with the schedule paused, if this was one failure too many."""
    was_held = row.state == RunState.HELD
    values: dict[str, Any] = {
        "active": place.active - (0 if was_held else 1),
        "held": place.held - (1 if was_held else 0),
        "last_completed_at": now,
        "last_completed_run_id": row.run_id,
    }
    if isinstance(planning, Exception):
        return values
    ending = plan_ending(planning, Status(place.status), place.failures_in_a_row, end.state)
    values["failures_in_a_row"] = ending.failures_in_a_row
    if ending.failed:
        values |= {"failures_count": place.failures_count + 1, "last_error": end.kept_error, "last_error_at": now}
    if end.state is RunState.LAUNCH_FAILED:
        values["last_dispatch_status"] = dispatch_status(Obstacle.LAUNCH_FAILED)
    if ending.pause_reason is not None:
        values |= pause_after_failures(connection, place, planning, ending.pause_reason, now)
    return values


# All that `_counted` may change.
_MOVED = (
    "active", "held", "last_completed_at", "last_completed_run_id", "failures_in_a_row", "failures_count", "last_error",
    "last_error_at", "last_dispatch_status", "status", "paused_at", "pause_reason", "next_sequence", "decided_until",
)  # fmt: skip
_MOVE = (
    update(positions)
    .where(positions.c.schedule_uid == bindparam("uid"))
    .values({name: bindparam(f"new_{name}") for name in _MOVED})
)
