"""How the holder of a position's lock moves it, and sets the counters right when a limit is new."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.ids import id_at
from horarium.instant import DAY, Instant
from horarium.schedule.run import FINAL
from horarium.store.schedules.facts import lock_counters, schedule_owner
from horarium.store.tables import counters, positions, runs


def move(connection: Connection, uid: bytes, **columns: Any) -> None:
    """Columns of `positions`; the version of the schedule stays, whoever moves it too says so elsewhere."""
    connection.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(**columns))


def recount_today(connection: Connection, uid: bytes, now: Instant) -> None:
    """What this schedule has run and spent since midnight UTC, so that a limit added at noon counts the morning."""
    day = now // DAY
    ended = runs.c.state.in_(sorted(state.value for state in FINAL))
    spent = sa.case((ended, runs.c.cost), else_=runs.c.reserved)
    # Ids are in order of birth, so the index can leave out what is old. They follow the clock of the machine,
    # which may differ from the one that all processes share: the day itself is told by `created_at`.
    counted = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(spent), 0)).where(
            runs.c.schedule_uid == uid,
            runs.c.parent_run_id.is_(None),
            runs.c.run_id >= id_at((day - 1) * DAY),
            runs.c.created_at >= day * DAY,
        )
    ).one()
    owner = schedule_owner(uid)
    lock_counters(connection, [("runs", owner, day), ("spent", owner, day)])
    for kind, value in (("runs", counted[0]), ("spent", int(counted[1]))):
        connection.execute(
            sa.update(counters)
            .where(counters.c.kind == kind, counters.c.owner == owner, counters.c.day == day)
            .values(value=value)
        )
