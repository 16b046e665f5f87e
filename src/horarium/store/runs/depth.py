"""Open runs by state, by kind and queue, and by who has them in hand. For operators: all namespaces, and bounded."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.run import HANDED_OUT, OPEN, RunState
from horarium.store.database.bounded_count import count_up_to
from horarium.store.runs.states import HANDED_OUT_LIST, WAITING_ROOT
from horarium.store.tables import approvals, runs

WAITING = (RunState.READY, RunState.QUEUED, RunState.HELD)
MOST_COUNTED = 50_000
"""Maximum counted runs per state, to bound the duration of the query."""
_ONE_STATE = {state: f"state = '{state.value}'" for state in OPEN - {RunState.AWAITING_APPROVAL}} | {
    state: f"state IN {HANDED_OUT_LIST} AND state = '{state.value}'" for state in HANDED_OUT - {RunState.QUEUED}
}
MOST_GROUPS = 100
MOST_HOLDERS = 500


class Waiting(NamedTuple):
    state: RunState
    kind: str
    queue: str | None
    runs: int


class Held(NamedTuple):
    """`until` is when the last of the leases ends."""

    owner: str
    runs: int
    until: Instant


def waiting(connection: Connection) -> list[Waiting]:
    """The largest groups of each state first; a state of which MOST_COUNTED are told has at least so many."""
    found = []
    for state in WAITING:
        few, count = _some(state), sa.func.count()
        grouped = sa.select(few.c.kind, few.c.queue, count).group_by(few.c.kind, few.c.queue)
        rows = connection.execute(grouped.order_by(count.desc(), few.c.kind, few.c.queue).limit(MOST_GROUPS))
        found += [Waiting(state, *row) for row in rows]
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


def in_hand(connection: Connection) -> list[Held]:
    """Those who hold the most first: processes, and workers of pull queues by the names that they gave."""
    count = sa.func.count()
    leased = (
        sa.select(runs.c.lease_owner, count, sa.func.max(runs.c.lease_until))
        .where(sa.text("lease_until IS NOT NULL"), runs.c.lease_owner.is_not(None))
        .group_by(runs.c.lease_owner)
    )
    rows = connection.execute(leased.order_by(count.desc(), runs.c.lease_owner).limit(MOST_HOLDERS))
    return [Held(*row) for row in rows]
