"""SQL of the health of schedules: conditions by which an index finds candidates, their facts, and what was reported.

A condition is no judgement: the health of a candidate is decided afterwards, and all other schedules are healthy or
have never run, so nothing is read of them. Work grows with the number of unhealthy schedules: consecutive failures
are counted on the position when a run ends, so runs are read only of schedules that fail. Each change is reported
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.health import MAX_FAILED_SHOWN, AwaitingApprovals, FailedRun, HealthFacts
from horarium.core.decision.statuses import NEEDS_SOMEBODY, HealthStatus
from horarium.core.document.json_values import unreadable_of
from horarium.core.document.planning import FAILING_AFTER_DIGITS, FAILING_AFTER_KEY, Planning
from horarium.core.document.states import UNSUCCESSFUL, RunState, Status
from horarium.core.policy.approval import ApprovalDecision
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import ROWS, SELECT_ROWS, SELECT_WITH_DOCUMENT, ScheduleRow, listed_with_document
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_states import OPEN_ROOT, sql_list
from horarium.platform.database.statements import RowInsert, Scope, count_up_to
from horarium.platform.database.tables import approvals, plannings, positions, runs, schedules, unwell_schedules
from horarium.platform.database.tables.schedules import FAILED
from horarium.platform.ids import id_text

# As text: PostgreSQL takes a partial index only for a condition that it can read.
AT_REST: Final = sa.text("status <> 'active' AND status <> 'deleted'")
ACTIVE: Final = sa.text("status = 'active'")

SIGNED: Final = (
    HealthStatus.BROKEN,
    HealthStatus.PAUSED,
    HealthStatus.WAITING_FOR_APPROVAL,
    HealthStatus.FAILING,
    HealthStatus.STALE,
    HealthStatus.LATE,
)
"""The words that have a sign."""


def sign(
    status: HealthStatus,
    namespace: sa.ColumnElement[str] | None,
    now: sa.ColumnElement[int],
    failing_after: sa.ColumnElement[int],
) -> sa.ColumnElement[bool]:
    """Return the condition on rows of `positions`; `failing_after` is the setting, None stands for all namespaces."""
    mine = sa.true() if namespace is None else positions.c.namespace == namespace
    match status:
        case HealthStatus.BROKEN:
            return sa.and_(mine, AT_REST, positions.c.status == Status.BROKEN.value)
        case HealthStatus.PAUSED:
            return sa.and_(mine, AT_REST, positions.c.status == Status.PAUSED.value)
        case HealthStatus.WAITING_FOR_APPROVAL:
            return sa.and_(mine, positions.c.schedule_uid.in_(awaits_approval(namespace)))
        case HealthStatus.FAILING:
            return sa.and_(mine, is_failing(failing_after))
        case HealthStatus.STALE | HealthStatus.LATE:
            return sa.and_(mine, ACTIVE, sa.or_(positions.c.next_due <= now, positions.c.next_due.is_(None)))
        case HealthStatus.NEVER_RUN | HealthStatus.OK:
            raise LookupError(f"no index covers schedules in status {status}")


# Where a schedule says it, it stands first in its planning text, which no other text can imitate.
_OWN_THRESHOLD: Final = f'{{"{FAILING_AFTER_KEY}":"'


def is_failing(failing_after: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition on `positions` that enough runs in a row have failed; `failing_after` is the setting."""
    at, text = len(_OWN_THRESHOLD) + 1, plannings.c.text
    own = (
        sa.select(sa.func.substr(text, at, FAILING_AFTER_DIGITS))
        .where(plannings.c.planning == positions.c.planning, sa.func.substr(text, 1, at - 1) == _OWN_THRESHOLD)
        .scalar_subquery()
    )
    return sa.and_(
        sa.text(FAILED), _digits(positions.c.failures_in_a_row) >= sa.func.coalesce(own, _digits(failing_after))
    )


def _digits(number: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    """Write a number as it stands in a planning text: no text that is compared with it can raise an error."""
    return sa.func.substr(sa.cast(sa.cast(number, sa.BigInteger) + 10**FAILING_AFTER_DIGITS, sa.Text), 2)


def awaits_approval(namespace: sa.ColumnElement[str] | None) -> sa.Select[tuple[bytes]]:
    """The schedules of questions that nobody has answered; None = of all namespaces."""
    return (
        sa.select(runs.c.schedule_uid)
        .join_from(approvals, runs, runs.c.run_id == approvals.c.run_id)
        .where(
            approvals.c.decision == ApprovalDecision.PENDING.value,
            sa.true() if namespace is None else approvals.c.namespace == namespace,
            runs.c.schedule_uid.is_not(None),
        )
        .distinct()
    )


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
) -> list[HealthFacts]:
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
    waiting: dict[bytes, AwaitingApprovals],
    failing_after: int,
) -> HealthFacts:
    unreadable = unreadable_of(row)
    if unreadable is not None:
        planning = ValueError(unreadable.detail)
    broken = isinstance(planning, Exception)
    return HealthFacts(
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


def waiting_runs(connection: Connection, uids: Collection[bytes]) -> dict[bytes, AwaitingApprovals]:
    """Count root runs awaiting approval, and steps of runs that do, by schedule that has any."""
    if not uids:
        return {}
    steps = {uid: AwaitingApprovals(0, since, count) for uid, count, since in connection.execute(_waiting_steps(uids))}
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
    roots = {uid: AwaitingApprovals(count, since) for uid, count, since in connection.execute(statement)}
    both = {
        uid: AwaitingApprovals(root.count, min(root.since, steps[uid].since), steps[uid].steps)
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
def _newest_failed_of(uid: str, runs: str = "runs") -> str:
    return f"""
SELECT schedule_uid, run_id, state, finished_at, substr(error, 1, {_MAX_ERROR}) FROM {runs}
WHERE schedule_uid = {uid} AND parent_run_id IS NULL AND state IN {sql_list(UNSUCCESSFUL)}
ORDER BY run_id DESC LIMIT {MAX_FAILED_SHOWN}
"""


_NEWEST_FAILED_OF_ONE = _newest_failed_of("?")
_EACH = run_archive.runs_text(
    lambda runs: (
        f"SELECT r.* FROM unnest(%s::bytea[]) AS of (uid) CROSS JOIN LATERAL ({_newest_failed_of('of.uid', runs)}) r"
    )
)


def _newest_failed(connection: Connection, uids: Sequence[bytes]) -> Iterable[Sequence[Any]]:
    if connection.dialect.name == "postgresql":
        found = list(connection.exec_driver_sql(_EACH.of_runs, (list(uids),)))
        if run_archive.has_archive(connection):
            found += connection.exec_driver_sql(_EACH.of_archive, (list(uids),))
        return found
    part = f"SELECT * FROM ({_NEWEST_FAILED_OF_ONE})"
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
    mine = is_failing(sa.literal(failing_after, sa.BigInteger))
    return count_up_to(connection, sa.select(sa.literal(1)).select_from(positions).where(mine), MOST_COUNTED)


def count_broken(connection: Connection) -> int:
    """Count the broken schedules of all namespaces, up to MOST_COUNTED."""
    broken = sa.select(sa.literal(1)).where(AT_REST, positions.c.status == Status.BROKEN.value)
    return count_up_to(connection, broken.select_from(positions), MOST_COUNTED)


def _signs(namespace: str | None, now: Instant, failing_after: int) -> list[tuple[sa.Column[Any], sa.Select[Any]]]:
    """Each along an index of few rows, with the column of what it finds."""
    uid, status = positions.c.schedule_uid, positions.c.status
    mine = sa.true() if namespace is None else positions.c.namespace == namespace
    pending = awaits_approval(None if namespace is None else sa.literal(namespace))
    return [
        (uid, sa.select(uid).where(mine, AT_REST, status == Status.BROKEN.value)),
        (uid, sa.select(uid).where(mine, is_failing(sa.literal(failing_after, sa.BigInteger)))),
        (runs.c.schedule_uid, pending),
        (uid, sa.select(uid).where(mine, ACTIVE, positions.c.next_due <= now).order_by(positions.c.next_due)),
        (uid, sa.select(uid).where(mine, ACTIVE, positions.c.next_due.is_(None))),
    ]


# "unwell" in ASCII: the lock of whoever tells.
_LOCK = int.from_bytes(b"unwell", "big")
_REMEMBERED_AT_ONCE = 500
_ROWS = RowInsert(unwell_schedules, ("schedule_uid", "namespace", "status", "since"))


def claim_reports(connection: Connection) -> bool:
    """Claim the notification until the transaction ends; False if it is taken. SQLite has a single writer."""
    if connection.dialect.name != "postgresql":
        return True
    lock = sa.func.pg_try_advisory_xact_lock(sa.literal(_LOCK, sa.BigInteger))
    return bool(connection.execute(sa.select(lock)).scalar_one())


def reported_page(connection: Connection, *, after: bytes, limit: int) -> dict[bytes, HealthStatus]:
    """The next ones in the order of their births."""
    uid = unwell_schedules.c.schedule_uid
    return _read(connection, _REMEMBERED.where(uid > after).order_by(uid).limit(limit))


def reported(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, HealthStatus]:
    """Those of them that were told to need somebody."""
    found: dict[bytes, HealthStatus] = {}
    for start in range(0, len(uids), _REMEMBERED_AT_ONCE):
        some = list(uids[start : start + _REMEMBERED_AT_ONCE])
        found |= _read(connection, _REMEMBERED.where(unwell_schedules.c.schedule_uid.in_(some)))
    return found


_REMEMBERED = sa.select(unwell_schedules.c.schedule_uid, unwell_schedules.c.status)


def _read(connection: Connection, statement: sa.Select[tuple[bytes, str]]) -> dict[bytes, HealthStatus]:
    return {row.schedule_uid: HealthStatus(row.status) for row in connection.execute(statement)}


def set_reported(connection: Connection, judged: Iterable[tuple[bytes, str, HealthStatus]], *, now: Instant) -> None:
    """Those of them that need somebody."""
    _ROWS.run(connection, [(uid, ns, status.value, now) for uid, ns, status in judged if status in NEEDS_SOMEBODY])


def clear_reported(connection: Connection, uids: Sequence[bytes]) -> None:
    for start in range(0, len(uids), _REMEMBERED_AT_ONCE):
        some = list(uids[start : start + _REMEMBERED_AT_ONCE])
        connection.execute(sa.delete(unwell_schedules).where(unwell_schedules.c.schedule_uid.in_(some)))
