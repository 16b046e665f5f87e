"""What the health of schedules depends on beyond their rows, for many at once; and which of them may be unwell.

Work grows with what is wrong and not with what is stored: a row of failures is counted on the position when a run
ends, so the runs themselves are read only of those that fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.health import MAX_FAILED_SHOWN, FailedRun, Vitals, Waiting
from horarium.decision.health_status import HealthStatus
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.policy.approval import ApprovalDecision
from horarium.schedule.damage import unreadable_of
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import UNSUCCESSFUL, RunState
from horarium.store.database.bounded_count import count_up_to
from horarium.store.runs import everywhere
from horarium.store.runs.states import OPEN_ROOT, sql_list
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ROWS, SELECT_ROWS, SELECT_WITH_DOCUMENT, ScheduleRow, listed_with_document
from horarium.store.schedules.signs import ACTIVE, AT_REST, failing, sign, waiting
from horarium.store.scope import Scope
from horarium.store.tables import approvals, positions, runs, schedules, unwell_schedules

# Of parts that SQLite takes in one statement: 500.
_AT_ONCE = 100
_MAX_ERROR = 1_000
MOST_COUNTED = 50_000


def vitals_of(
    connection: Connection,
    known: Plannings,
    rows: Sequence[ScheduleRow],
    failing_after: int,
    *,
    with_failed: bool = True,
) -> list[Vitals]:
    """Gather the vitals of the rows, in their order, with four queries.

    `failing_after` is the setting. `with_failed` reads the failed runs that a sentence names.
    """
    plannings = known.load(connection, {row.planning for row in rows})
    waiting = waiting_runs(connection, [row.schedule_uid for row in rows if row.active])
    found = [_vitals(row, plannings[row.planning], waiting, failing_after) for row in rows]
    if not with_failed:
        return found
    failed = failed_runs(connection, [each.uid for each in found if each.failures_in_a_row >= each.threshold])
    return [replace(each, failed=failed[each.uid]) if each.uid in failed else each for each in found]


def with_sign(
    connection: Connection, namespace: Scope, status: HealthStatus, now: Instant, failing_after: int, limit: int
) -> list[ScheduleRow]:
    """Return schedules of which the word may hold, at most `limit`: those that have been due for longest come first."""
    own = None if namespace is None else sa.literal(namespace)
    mine = sign(status, own, sa.literal(now, sa.BigInteger), sa.literal(failing_after, sa.BigInteger))
    return ROWS.all_listed(
        connection,
        SELECT_ROWS.where(mine, schedules.c.deleted_at.is_(None)).order_by(positions.c.next_due).limit(limit),
    )


def _vitals(
    row: ScheduleRow,
    planning: Planning | Exception,
    waiting: dict[bytes, Waiting],
    failing_after: int,
) -> Vitals:
    unreadable = unreadable_of(row)
    if unreadable is not None:
        planning = ValueError(unreadable.detail)
    broken = isinstance(planning, Exception)
    return Vitals(
        uid=row.schedule_uid,
        status=row.status,
        planning=None if isinstance(planning, Exception) else planning,
        decided_until=row.decided_until,
        runs_born=row.runs_born,
        failures_in_a_row=row.failures_in_a_row,
        empty_in_a_row=row.empty_in_a_row,
        last_completed_at=row.last_completed_at,
        error=str(planning) if broken and row.status is not Status.BROKEN else row.last_error,
        paused_at=row.paused_at,
        pause_reason=row.pause_reason,
        waiting=waiting.get(row.schedule_uid),
        failing_after=failing_after,
        last_failure=row.last_error if row.failures_in_a_row else None,
    )


def waiting_runs(connection: Connection, uids: Collection[bytes]) -> dict[bytes, Waiting]:
    """Count root runs awaiting approval, and steps of runs that do, by schedule that has any."""
    if not uids:
        return {}
    steps = {uid: Waiting(0, since, count) for uid, count, since in connection.execute(_waiting_steps(uids))}
    statement = (
        sa.select(runs.c.schedule_uid, sa.func.count(), sa.func.min(runs.c.created_at))
        # The condition of the index `runs_open`, as text, so that both databases see that it is the one to use.
        .where(
            runs.c.schedule_uid.in_(list(uids)),
            sa.text(OPEN_ROOT),
            runs.c.state == RunState.AWAITING_APPROVAL.value,
        )
        .group_by(runs.c.schedule_uid)
    )
    roots = {uid: Waiting(count, since) for uid, count, since in connection.execute(statement)}
    both = {
        uid: Waiting(root.count, min(root.since, steps[uid].since), steps[uid].steps)
        for uid, root in roots.items()
        if uid in steps
    }
    return {**steps, **roots, **both}


def _waiting_steps(uids: Collection[bytes]) -> sa.Select[Any]:
    return (
        sa.select(approvals.c.schedule_uid, sa.func.count(), sa.func.min(approvals.c.requested_at))
        .where(
            approvals.c.schedule_uid.in_(list(uids)),
            approvals.c.decision == ApprovalDecision.PENDING.value,
            approvals.c.node_id.is_not(None),
        )
        .group_by(approvals.c.schedule_uid)
    )


def failed_runs(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, tuple[FailedRun, ...]]:
    """Read the newest failed root runs of each schedule, as many as a sentence names, newest first."""
    found: dict[bytes, list[FailedRun]] = {}
    for start in range(0, len(uids), _AT_ONCE):
        for uid, run_id, state, finished_at, error in _newest_failed(connection, uids[start : start + _AT_ONCE]):
            run = FailedRun(id_text(run_id), RunState(state), finished_at, error)
            found.setdefault(bytes(uid), []).append(run)
    newest = {uid: sorted(of, key=lambda run: run.run_id, reverse=True) for uid, of in found.items()}
    return {uid: tuple(of[:MAX_FAILED_SHOWN]) for uid, of in newest.items()}


# Backwards along the index `runs_by_schedule`: as fast among a million runs as among ten.
_NEWEST_FAILED = f"""
SELECT schedule_uid, run_id, state, finished_at, substr(error, 1, {_MAX_ERROR}) FROM runs
WHERE schedule_uid = {{uid}} AND parent_run_id IS NULL AND state IN {sql_list(UNSUCCESSFUL)}
ORDER BY run_id DESC LIMIT {MAX_FAILED_SHOWN}
"""
_EACH = f"SELECT r.* FROM unnest(%s::bytea[]) AS of (uid) CROSS JOIN LATERAL ({_NEWEST_FAILED.format(uid='of.uid')}) r"


def _newest_failed(connection: Connection, uids: Sequence[bytes]) -> Iterable[Sequence[Any]]:
    if connection.dialect.name == "postgresql":
        found = list(connection.exec_driver_sql(_EACH, (list(uids),)))
        if everywhere.has_archive(connection):
            found += connection.exec_driver_sql(everywhere.text_of_archive(_EACH), (list(uids),))
        return found
    part = f"SELECT * FROM ({_NEWEST_FAILED.format(uid='?')})"
    return connection.exec_driver_sql(" UNION ALL ".join([part] * len(uids)), tuple(uids))


def suspects(
    connection: Connection,
    namespace: str | None,
    now: Instant,
    failing_after: int,
    limit: int,
    *,
    untold: bool = False,
) -> list[bytes]:
    """Schedules that may be unwell, the oldest first; None = of all namespaces.

    Everything that is broken, fails, waits for an approval, or is due, of each kind at most `limit`. Who is none of
    these is well. With `untold` those are passed over that were told to need somebody: they never hide the others.
    """
    uids: set[bytes] = set()
    for uid, statement in _signs(namespace, now, failing_after):
        if untold:
            statement = statement.where(~sa.exists().where(unwell_schedules.c.schedule_uid == uid))
        uids.update(row[0] for row in connection.execute(statement.limit(limit)))
    return sorted(uids)


def find_live(connection: Connection, uids: Sequence[bytes]) -> list[tuple[ScheduleRow, dict[str, Any]]]:
    """Those of them that are live with their newest documents, the oldest first."""
    found: list[tuple[ScheduleRow, dict[str, Any]]] = []
    for start in range(0, len(uids), _AT_ONCE):
        some = SELECT_WITH_DOCUMENT.where(
            schedules.c.schedule_uid.in_(list(uids[start : start + _AT_ONCE])), schedules.c.deleted_at.is_(None)
        )
        found += map(listed_with_document, connection.execute(some.order_by(schedules.c.schedule_uid)))
    return found


def count_failing(connection: Connection, failing_after: int) -> int:
    """Count the failing schedules of all namespaces, up to MOST_COUNTED."""
    mine = failing(sa.literal(failing_after, sa.BigInteger))
    return count_up_to(connection, sa.select(sa.literal(1)).select_from(positions).where(mine), MOST_COUNTED)


def count_broken(connection: Connection) -> int:
    """Count the broken schedules of all namespaces, up to MOST_COUNTED."""
    broken = sa.select(sa.literal(1)).where(AT_REST, positions.c.status == Status.BROKEN.value)
    return count_up_to(connection, broken.select_from(positions), MOST_COUNTED)


def _signs(namespace: str | None, now: Instant, failing_after: int) -> list[tuple[sa.Column[Any], sa.Select[Any]]]:
    """Each along an index of few rows, with the column of what it finds."""
    uid, status = positions.c.schedule_uid, positions.c.status
    mine = sa.true() if namespace is None else positions.c.namespace == namespace
    pending = waiting(None if namespace is None else sa.literal(namespace))
    return [
        (uid, sa.select(uid).where(mine, AT_REST, status == Status.BROKEN.value)),
        (uid, sa.select(uid).where(mine, failing(sa.literal(failing_after, sa.BigInteger)))),
        (runs.c.schedule_uid, pending),
        (uid, sa.select(uid).where(mine, ACTIVE, positions.c.next_due <= now).order_by(positions.c.next_due)),
        (uid, sa.select(uid).where(mine, ACTIVE, positions.c.next_due.is_(None))),
    ]
