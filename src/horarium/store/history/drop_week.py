"""How a week of history is forgotten whole, on PostgreSQL: a checkpoint for each of its schedules, then the table goes.

It means what `trim_history` means, row by row: what was done to a schedule itself stays as long as the schedule, an
audit begins right after what is gone, and a namespace may keep longer than others. The few rows that stay move into
the partition that takes the rest. Where they are many the table stays as it is, and rows are deleted one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store import cutoffs, partition_upkeep
from horarium.store.cutoffs import Cutoffs
from horarium.store.database import Database
from horarium.store.partition_upkeep import Outcome
from horarium.store.partitions import Partition
from horarium.store.retention import LIFECYCLE, SETTLING
from horarium.store.tables import namespaces

# Schedules that one transaction looks at, each of which may have a row for every second of it; and those that may have
# a reason to wait, of a week.
_BATCH = 100
_MOST_HELD = 10_000
_LIFECYCLE = sorted(kind.value for kind in LIFECYCLE)

_NEXT = "SELECT DISTINCT schedule_uid FROM {part} WHERE schedule_uid > %s ORDER BY schedule_uid LIMIT {limit}"
_SUMS = """
WITH summed AS (
  SELECT schedule_uid, max(sequence) FILTER (WHERE is_decision) AS last,
    max(nominal_last) FILTER (WHERE is_decision) AS nominal, bool_or({stays}) AS stays
  FROM (
    SELECT *, sequence IS NOT NULL AND event_type <> ALL(%(lifecycle)s) AS is_decision
    FROM {part} WHERE schedule_uid > %(after)s AND schedule_uid <= %(until)s
  ) AS told GROUP BY schedule_uid
)
SELECT schedule_uid, last, nominal, decided_until, stays,
  (SELECT max(recorded_at) FROM history o
    WHERE o.schedule_uid = summed.schedule_uid AND o.sequence <= last AND event_type = ANY(%(settling)s)) AS settled,
  EXISTS (SELECT FROM history o WHERE o.schedule_uid = summed.schedule_uid AND o.sequence < last
    AND o.event_type <> ALL(%(lifecycle)s) AND o.tableoid <> '{part}'::regclass) AS has_older
FROM summed LEFT JOIN positions USING (schedule_uid) ORDER BY schedule_uid
"""
_CHECKPOINTS = """
INSERT INTO checkpoints (schedule_uid, sequence, decided_until, made_at)
SELECT *, %s FROM unnest(%s::bytea[], %s::bigint[], %s::bigint[])
ON CONFLICT (schedule_uid) DO UPDATE SET
  sequence = greatest(checkpoints.sequence, excluded.sequence),
  decided_until = greatest(checkpoints.decided_until, excluded.decided_until),
  made_at = greatest(checkpoints.made_at, excluded.made_at)
"""
_STAYING = """
SELECT feed_id FROM {part} AS part WHERE {stays} OR schedule_uid = ANY(%(held)s) OR (
  sequence IS NOT NULL AND event_type = ANY(%(lifecycle)s)
  AND EXISTS (SELECT FROM positions WHERE positions.schedule_uid = part.schedule_uid)
) LIMIT {limit}
"""


class Sums(NamedTuple):
    """Summary of a schedule's rows in a week. `last` None = there is no decision among them."""

    schedule_uid: bytes
    last: int | None
    nominal: Instant | None
    decided_until: Instant | None
    stays: bool
    settled: Instant | None
    has_older: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """New values for the checkpoint of a schedule."""

    sequence: int
    decided_until: Instant


@dataclass(frozen=True, slots=True)
class Held:
    """Its rows stay, for rows are forgotten from the front and without a hole."""


def judge(sums: Sums) -> Mark | Held | None:
    """None = nothing is to be said: there are no decisions, or nobody can ask for them any more."""
    if sums.last is None or sums.decided_until is None or sums.stays:
        return None
    if sums.has_older or (sums.nominal or 0) > sums.decided_until:
        return Held()
    return Mark(sums.last + 1, min(sums.decided_until, max(sums.nominal or 0, sums.settled or 0)))


class HistoryWeek:
    """One transaction a step: checkpoints of some schedules, then the drop."""

    def __init__(self, database: Database, part: Partition, before: Cutoffs, *, now: Instant) -> None:
        assert isinstance(part.high, int)
        self._database = database
        self._part = part
        self._now = now
        self._before = before
        self._stays = database.read(self._find_stays)
        self._after: bytes | None = b""
        self._held: list[bytes] = []

    def _find_stays(self, connection: Connection) -> str:
        assert isinstance(self._part.high, int)
        return _stays(connection, self._before, self._part.high)

    def step(self) -> Outcome | None:
        """None = there is more to do."""
        if self._after is None:
            return self._drop()
        outcome = partition_upkeep.in_turn(self._database, self._mark)
        if outcome is not Outcome.DONE:
            return outcome
        return Outcome.LEFT if len(self._held) > _MOST_HELD else None

    def _values(self) -> dict[str, Any]:
        return {"lifecycle": _LIFECYCLE, "settling": SETTLING, "held": self._held, "after": self._after}

    def _mark(self, connection: Connection) -> Outcome:
        partition_upkeep.take_time(connection)
        # Some schedules are a small part of a week, whatever the planner knows of it.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        following = _NEXT.format(part=self._part.name, limit=_BATCH)
        uids = list(connection.exec_driver_sql(following, (self._after,)).scalars())
        statement = _SUMS.format(part=self._part.name, stays=self._stays)
        values = self._values() | {"until": uids[-1] if uids else b""}
        found = [Sums(*row) for row in connection.exec_driver_sql(statement, values)]
        judged = [(each.schedule_uid, judge(each)) for each in found]
        marks = [(uid, mark.sequence, mark.decided_until) for uid, mark in judged if isinstance(mark, Mark)]
        if marks:
            connection.exec_driver_sql(_CHECKPOINTS, (self._now, *(list(each) for each in zip(*marks, strict=True))))
        self._held += [uid for uid, verdict in judged if isinstance(verdict, Held)]
        self._after = uids[-1] if len(uids) == _BATCH else None
        return Outcome.DONE

    def _drop(self) -> Outcome:
        limit = partition_upkeep.MOST_MOVED + 1
        statement = _STAYING.format(part=self._part.name, limit=limit, stays=self._stays)
        staying = self._database.read(lambda c: partition_upkeep.slowly(c, statement, self._values()))
        if len(staying) == limit:
            return Outcome.LEFT
        # A namespace may have got other days meanwhile.
        return partition_upkeep.drop(
            self._database,
            self._part,
            "feed_id",
            staying,
            lambda connection: self._find_stays(connection) == self._stays,
        )


def _stays(connection: Connection, before: Cutoffs, until: Instant) -> str:
    """Build a condition for rows of namespaces with a longer retention; the database quotes the names."""
    each = namespaces.alias("each")
    old = cutoffs.cutoff(before, each.c.namespace) >= until
    rows = connection.execute(sa.select(sa.func.quote_literal(each.c.namespace), old)).all()
    if before.usual is not None and before.usual >= until:
        return _one_of("namespace IN", [name for name, is_old in rows if not is_old], "false")
    return _one_of("namespace NOT IN", [name for name, is_old in rows if is_old], "true")


def _one_of(begin: str, names: list[str], none: str) -> str:
    return f"{begin} ({', '.join(names)})".replace("%", "%%") if names else none
