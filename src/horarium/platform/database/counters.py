"""Counters that several schedules share: cost and runs of a day, and holders of a concurrency key.

A counter is locked after the positions, and counters in sorted order, so that two transactions never wait for each
other. Cost is counted in millionths of a credit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from sqlalchemy import Connection, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.policy.limits import MILLIONTHS
from horarium.instant import DAY, Instant
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.statements import rows_with
from horarium.platform.database.tables import counters, runs
from horarium.platform.ids import id_at

Counter = tuple[str, str, int]
"""Its kind, its owner and the day."""

# Far below what a column holds: whatever targets say they cost, no sum may keep a run from ending.
_MOST = 2**61
_NOTHING = Decimal(0)


def to_millionths(amount: Decimal) -> int:
    return int(amount * MILLIONTHS)


def to_credits(millionths: int) -> Decimal:
    return Decimal(millionths) / MILLIONTHS if millionths else _NOTHING


def schedule_owner(schedule_uid: bytes) -> str:
    return f"schedule:{schedule_uid.hex()}"


def assignee_owner(namespace: str, payer: str) -> str:
    """`payer` as `core/decision/run_policies.py` names them: an agent by its id, so that older counters stay good."""
    return f"assignee:{namespace} {payer}"


def key_owner(namespace: str, key: str) -> str:
    return f"key:{namespace} {key}"  # no namespace has a blank in it, a key may have anything


def lock_counters(connection: Connection, wanted: Iterable[Counter]) -> dict[Counter, int]:
    """Create what is not there, then lock all in sorted order; returns their values."""
    ordered = sorted(wanted)
    if not ordered:
        return {}
    rows = [{"kind": kind, "owner": owner, "day": day, "value": 0} for kind, owner, day in ordered]
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    connection.execute(insert(counters).on_conflict_do_nothing(), rows)
    return read_counters(connection, ordered, for_update=True)


def read_counters(connection: Connection, wanted: Sequence[Counter], *, for_update: bool = False) -> dict[Counter, int]:
    columns = (counters.c.kind, counters.c.owner, counters.c.day)
    statement = select(counters).order_by(*columns)
    rows = rows_with(connection, statement.with_for_update() if for_update else statement, columns, wanted)
    return {(row.kind, row.owner, row.day): row.value for row in rows}


def add_to_counters(connection: Connection, changes: Mapping[Counter, int]) -> None:
    """Counters that nobody has asked about yet are created on the way. One that is full stays full."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for (kind, owner, day), change in sorted(changes.items()):
        if change == 0:
            continue
        row = insert(counters).values(kind=kind, owner=owner, day=day, value=max(-_MOST, min(_MOST, change)))
        fits = counters.c.value <= _MOST - row.excluded.value
        added = case((fits, counters.c.value + row.excluded.value), else_=_MOST)
        connection.execute(row.on_conflict_do_update(index_elements=["kind", "owner", "day"], set_={"value": added}))


def recount_today(connection: Connection, uid: bytes, now: Instant) -> None:
    """Recount a schedule's runs and costs since midnight UTC, so that a limit added at noon includes the morning."""
    day = now // DAY
    ended = runs.c.state.in_(FINAL_NAMES)
    spent = case((ended, runs.c.cost), else_=runs.c.reserved)
    # Ids are in order of birth, so the index can leave out what is old. They follow the clock of the machine,
    # which may differ from the one that all processes share: the day itself is told by `created_at`.
    counted = connection.execute(
        select(func.count(), func.coalesce(func.sum(spent), 0)).where(
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
            update(counters)
            .where(counters.c.kind == kind, counters.c.owner == owner, counters.c.day == day)
            .values(value=value)
        )
