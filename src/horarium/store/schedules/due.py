"""Which schedules are due: claimed in one statement, locked until the transaction that decides them ends.

On PostgreSQL several tickers share the work (`SKIP LOCKED`); on SQLite the one writer has it alone.
A claim reads `positions` only: planning texts are compiled once and remembered by their hash. When more
is due than one batch holds, `turns.py` claims instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from horarium.decision.record import Counts
from horarium.decision.tick import Due
from horarium.instant import Instant
from horarium.schedule.planning import Planning, compile_planning
from horarium.schedule.position import Position, Status
from horarium.store.tables import plannings, positions

_NAMED = ("schedule_uid", "namespace", "schedule_id", "revision", "planning")
COLUMNS = ", ".join((*_NAMED, *Position._fields, *Counts._fields))
# Where the parts of a row begin.
_PLANNING, _POSITION = _NAMED.index("planning"), len(_NAMED)
_NEXT_DUE = _POSITION + Position._fields.index("next_due")
_STATUS, _COUNTS = _POSITION + Position._fields.index("status"), _POSITION + len(Position._fields)
_CLAIM_SQLITE = f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND next_due <= ? ORDER BY next_due LIMIT ?"
_CLAIM_POSTGRES = (
    f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND next_due <= %s ORDER BY next_due LIMIT %s "
    "FOR UPDATE SKIP LOCKED"
)
_AGAIN_POSTGRES = (
    f"SELECT {COLUMNS} FROM positions WHERE schedule_uid = ANY(%s) AND status = 'active' AND next_due <= %s "
    "ORDER BY next_due FOR UPDATE SKIP LOCKED"
)
_MAX_REMEMBERED = 65_536


class Claim(NamedTuple):
    """A due schedule under lock. `planning` is what could not be compiled, where it could not."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    revision: int
    next_due: Instant
    position: Position
    counts: Counts
    planning: Planning | Exception

    def due(self) -> Due:
        if isinstance(self.planning, Exception):
            raise self.planning
        return Due(self.schedule_uid, self.planning, self.position)


class Plannings:
    """Compiled planning texts by hash; a process meets each text once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Planning | Exception] = {}

    def load(self, connection: Connection, hashes: Iterable[bytes]) -> dict[bytes, Planning | Exception]:
        wanted = set(hashes)
        # What was found is kept apart: another thread may empty the memory meanwhile.
        found = {each: known for each in wanted if (known := self._known.get(each)) is not None}
        unknown = [each for each in wanted if each not in found]
        if len(self._known) + len(unknown) > _MAX_REMEMBERED:
            self._known.clear()
        for start in range(0, len(unknown), 500):
            chunk = unknown[start : start + 500]
            for planning, text in connection.execute(_TEXTS, {"hashes": chunk}):
                found[planning] = self._known[planning] = _compiled(text)
        missing = LookupError("the compiled definition of this revision does not exist any more")
        return {each: found.get(each, missing) for each in wanted}


_TEXTS = select(plannings.c.planning, plannings.c.text).where(
    plannings.c.planning.in_(bindparam("hashes", expanding=True))
)


def claim(connection: Connection, known: Plannings, now: Instant, limit: int) -> list[Claim]:
    """The most overdue first."""
    statement = _CLAIM_SQLITE if connection.dialect.name == "sqlite" else _CLAIM_POSTGRES
    rows = connection.exec_driver_sql(statement, (now, limit)).fetchall()
    return to_claims(connection, known, rows)


def claim_again(connection: Connection, known: Plannings, uids: Collection[bytes], now: Instant) -> list[Claim]:
    """The same schedules once more, after their batch failed; those that another process took are left out."""
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(uids))
        statement = (
            f"SELECT {COLUMNS} FROM positions WHERE schedule_uid IN ({marks}) AND status = 'active' "
            "AND next_due <= ? ORDER BY next_due"
        )
        rows = connection.exec_driver_sql(statement, (*uids, now)).fetchall()
    else:
        rows = connection.exec_driver_sql(_AGAIN_POSTGRES, (list(uids), now)).fetchall()
    return to_claims(connection, known, rows)


def earliest_due(connection: Connection) -> Instant | None:
    """When there will be work, or since when there has been: the age of the oldest undecided occurrence."""
    earliest: Instant | None = connection.execute(
        select(func.min(positions.c.next_due)).where(positions.c.status == Status.ACTIVE.value)
    ).scalar_one()
    return earliest


def to_claims(connection: Connection, known: Plannings, rows: Sequence[Sequence[Any]]) -> list[Claim]:
    """Convert rows with the columns of COLUMNS."""
    compiled = known.load(connection, (row[_PLANNING] for row in rows))
    return [_claim(row, compiled) for row in rows]


def _claim(row: Sequence[Any], compiled: dict[bytes, Planning | Exception]) -> Claim:
    uid, namespace, schedule_id, revision, planning = row[:_POSITION]
    position = Position._make((*row[_POSITION:_STATUS], Status.ACTIVE, *row[_STATUS + 1 : _COUNTS]))
    counts = Counts._make(row[_COUNTS:])
    return Claim(uid, namespace, schedule_id, revision, row[_NEXT_DUE], position, counts, compiled[planning])


def _compiled(text: str) -> Planning | Exception:
    try:
        return compile_planning(text)
    except Exception as wrong:  # a corrupt text is one schedule's trouble, told when that schedule is due
        return wrong
