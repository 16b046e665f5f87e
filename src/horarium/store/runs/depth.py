"""How much waits, by kind and queue, and who has runs in hand. For operators: over all namespaces, and bounded."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.run import RunState
from horarium.store.tables import runs

WAITING = (RunState.READY, RunState.QUEUED, RunState.HELD)
MOST_COUNTED = 50_000
"""Runs of a state that are looked at: nobody waits for the end of a count."""
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
    """Of all groups: the run that waits longest is often one of few on its queue. None = nothing is ready."""
    oldest: Instant | None = connection.scalar(sa.select(sa.func.min(_some(RunState.READY).c.ready_at)))
    return oldest


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
