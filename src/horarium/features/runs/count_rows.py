"""SQL that counts open runs, and what a namespace has, up to a bound.

Open runs are counted by state, kind and queue, and by the holder of their leases, over all namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, func, select, text

from horarium.core.document.states import HANDED_OUT, OPEN, UNSUCCESSFUL, EventType, Origin, Reason, RunState, Status
from horarium.core.policy.approval import ApprovalDecision
from horarium.features.history.rows import recorded_since
from horarium.features.schedules.health_rows import ACTIVE, AT_REST
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.run_states import ENDED_BADLY, HANDED_OUT_LIST, OPEN_ROOT, WAITING_ROOT
from horarium.platform.database.statements import Scope, count_up_to, within_each_of_scope
from horarium.platform.database.tables import approvals, history, positions, runs

WAITING = (RunState.READY, RunState.QUEUED, RunState.HELD)
MOST_COUNTED = 50_000
"""Maximum counted runs per state, to bound the duration of the query."""
_ONE_STATE = {state: f"state = '{state.value}'" for state in OPEN - {RunState.AWAITING_APPROVAL}} | {
    state: f"state IN {HANDED_OUT_LIST} AND state = '{state.value}'" for state in HANDED_OUT - {RunState.QUEUED}
}
MOST_GROUPS = 100
MOST_HOLDERS = 500


class WaitingGroup(NamedTuple):
    state: RunState
    kind: str
    queue: str | None
    runs: int


class LeaseHolder(NamedTuple):
    """`until` is when the last of the leases ends."""

    owner: str
    runs: int
    until: Instant


def waiting_groups(connection: Connection) -> list[WaitingGroup]:
    """The largest groups of each state first; a state of which MOST_COUNTED are told has at least so many."""
    found = []
    for state in WAITING:
        few, count = _some(state), sa.func.count()
        grouped = sa.select(few.c.kind, few.c.queue, count).group_by(few.c.kind, few.c.queue)
        rows = connection.execute(grouped.order_by(count.desc(), few.c.kind, few.c.queue).limit(MOST_GROUPS))
        found += [WaitingGroup(state, *row) for row in rows]
    return found


def oldest_ready(connection: Connection) -> Instant | None:
    """Time of the oldest ready run of all groups; it often is on a queue with few runs. None = none is ready."""
    oldest: Instant | None = connection.scalar(sa.select(sa.func.min(_some(RunState.READY).c.ready_at)))
    return oldest


def by_state(connection: Connection) -> dict[RunState, int]:
    """Count open runs with their steps, of each state MOST_COUNTED at most."""
    one = sa.select(sa.literal(1)).select_from(runs)
    # Each condition as text that stands in a partial index: SQLite compares texts.
    counted = {
        state: count_up_to(connection, one.where(sa.text(condition)), MOST_COUNTED)
        for state, condition in _ONE_STATE.items()
    }
    steps = sa.select(sa.literal(1)).where(sa.text("decision = 'pending'"), approvals.c.node_id.is_not(None))
    waiting = count_up_to(connection, one.where(sa.text(WAITING_ROOT)), MOST_COUNTED)
    waiting += count_up_to(connection, steps.select_from(approvals), MOST_COUNTED - waiting)
    return {**counted, RunState.AWAITING_APPROVAL: waiting}


def _some(state: RunState) -> sa.Subquery:
    # The state as text: so both databases see that a partial index holds just these.
    some = sa.select(runs.c.kind, runs.c.queue, runs.c.ready_at).where(sa.text(f"state = '{state.value}'"))
    return some.limit(MOST_COUNTED).subquery()


def lease_holders(connection: Connection) -> list[LeaseHolder]:
    """Those who hold the most first: processes, and workers of pull queues by the names that they gave."""
    count = sa.func.count()
    leased = (
        sa.select(runs.c.lease_owner, count, sa.func.max(runs.c.lease_until))
        .where(sa.text("lease_until IS NOT NULL"), runs.c.lease_owner.is_not(None))
        .group_by(runs.c.lease_owner)
    )
    rows = connection.execute(leased.order_by(count.desc(), runs.c.lease_owner).limit(MOST_HOLDERS))
    return [LeaseHolder(*row) for row in rows]


def waiting_roots(connection: Connection, uids: Sequence[bytes]) -> dict[bytes, int]:
    """By schedule, where there are any; along an index that only such runs are in."""
    if not uids:
        return {}
    # As text, so that both databases see which index is the one to use.
    mine = select(runs.c.schedule_uid, func.count()).where(text(WAITING_ROOT), runs.c.schedule_uid.in_(uids))
    rows = connection.execute(mine.group_by(runs.c.schedule_uid))
    return {uid: int(count) for uid, count in rows}


_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """`bounded`: there are at least so many."""

    count: int
    bounded: bool = False


def count_schedules(connection: Connection, namespace: Scope, most: int) -> dict[Status, BoundedCount]:
    """By status, each along its index; deleted ones are not counted."""
    mine = within_each_of_scope(positions.c.namespace, namespace)
    active = _count(connection, sa.select(sa.literal(1)).where(mine, ACTIVE), most)
    at_rest = _by_word(connection, sa.select(positions.c.status).where(mine, AT_REST), most)
    is_cut = any(each.bounded for each in at_rest.values())
    others = {status: at_rest.get(status.value, BoundedCount(0, is_cut)) for status in Status}
    found = {**others, Status.ACTIVE: active}
    return {status: count for status, count in found.items() if status is not Status.DELETED}


def count_open_runs(connection: Connection, namespace: Scope, most: int) -> dict[RunState, BoundedCount]:
    """By state, of runs that have not ended, without the steps of workflows."""
    mine = sa.select(runs.c.state).where(within_each_of_scope(runs.c.namespace, namespace), sa.text(OPEN_ROOT))
    found = _by_word(connection, mine, most)
    is_cut = any(each.bounded for each in found.values())
    return {state: found.get(state.value, BoundedCount(0, is_cut)) for state in OPEN}


def _by_word(connection: Connection, rows: sa.Select[Any], most: int) -> Mapping[str, BoundedCount]:
    """Count rows by word, among the first `most`."""
    some = rows.limit(most + 1).subquery()
    word = some.c[0]
    counted = connection.execute(sa.select(word, sa.func.count()).group_by(word))
    found: dict[str, int] = {name: count for name, count in counted}  # noqa: C416 - rows are no pairs to a type checker
    is_cut = sum(found.values()) > most
    return {name: BoundedCount(min(count, most), is_cut) for name, count in found.items()}


def count_requests(connection: Connection, namespace: Scope, most: int) -> BoundedCount:
    """That wait for an answer."""
    pending = sa.select(sa.literal(1)).where(
        within_each_of_scope(approvals.c.namespace, namespace), approvals.c.decision == ApprovalDecision.PENDING.value
    )
    return _count(connection, pending, most)


def count_missed(connection: Connection, namespace: Scope, start: Instant, end: Instant, most: int) -> BoundedCount:
    """Rows of missed occurrences that begin in a window, among the `most` newest occurrences of it.

    What was missed and backfilled later has run after all.
    """
    some = (
        sa.select(history.c.schedule_uid, history.c.nominal, history.c.event_type, history.c.payload)
        .where(
            within_each_of_scope(history.c.namespace, namespace),
            history.c.nominal.is_not(None),
            history.c.nominal >= start,
            history.c.recorded_at >= recorded_since(start),
            history.c.nominal < end,
        )
        .order_by(history.c.nominal.desc())
        .limit(most + 1)
        .subquery()
    )
    ran = sa.exists().where(
        runs.c.schedule_uid == some.c.schedule_uid, runs.c.nominal == some.c.nominal, runs.c.origin.in_(_OCCURRENCES)
    )
    is_missed = sa.and_(
        some.c.event_type == EventType.MISSED.value,
        _is_for(connection, some.c.payload, Reason.MISSED),
        ~ran,
    )
    looked_at, found = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((is_missed, 1), else_=0)), 0)).select_from(some)
    ).one()
    return BoundedCount(int(found), looked_at > most)


def count_failed(connection: Connection, namespace: Scope, since: Instant, most: int) -> BoundedCount:
    """Count unsuccessful runs that ended at or after an instant, among the `most` newest unsuccessful ones."""
    count, bounded = 0, False
    for state in sorted(UNSUCCESSFUL):
        newest = partial(_newest, namespace=namespace, state=state, limit=most + 1)
        found = run_archive.rows_everywhere(connection, newest, most=most + 1)
        ended = {run_id for run_id, finished_at in found if finished_at >= since}
        count, bounded = count + len(ended), bounded or len(found) > most
    return BoundedCount(count, bounded)


def _newest(runs: RunsTable, *, namespace: Scope, state: RunState, limit: int) -> sa.Select[Any]:
    """The newest of those that ended badly, which have an index."""
    return (
        sa.select(runs.c.run_id, runs.c.finished_at)
        .where(
            within_each_of_scope(runs.c.namespace, namespace),
            sa.text(ENDED_BADLY),
            runs.c.state == state.value,
            runs.c.parent_run_id.is_(None),
        )
        .order_by(runs.c.run_id.desc())
        .limit(limit)
    )


def _is_for(connection: Connection, payload: sa.ColumnElement[str], reason: Reason) -> sa.ColumnElement[bool]:
    """The first reason in a payload is its own: that of whoever gave the command, in their words, stands behind it."""
    place = sa.func.strpos if connection.dialect.name == "postgresql" else sa.func.instr
    own = place(payload, f'"reason":"{reason.value}"')
    return sa.and_(own > 0, own == place(payload, '"reason":'))


def _count(connection: Connection, rows: sa.Select[Any], most: int) -> BoundedCount:
    found = count_up_to(connection, rows, most + 1)
    return BoundedCount(min(found, most), found > most)
