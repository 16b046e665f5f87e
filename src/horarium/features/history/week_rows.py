"""SQL that drops a whole week of history or of runs, on PostgreSQL.

It deletes the same rows as `retention_rows.py` does one by one. Of history, each schedule gets a checkpoint before the
table is dropped; changes of a schedule itself stay as long as the schedule, an audit begins right after what is gone,
and a namespace may keep longer than others.

A tree of runs is dropped by the end of its root: first those of the archive, then the events and lines of all. Rows of
unpartitioned tables that belong to a run are deleted before it. Events and lines stay if their run does: the newest of
its schedule, or one that is kept longer.

The few rows that stay move into the default partition; where they are many the table stays, and rows are deleted one
by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.features.runs.retention_rows import LIFECYCLE, SETTLING
from horarium.features.secrets.rows import forget_of_runs
from horarium.instant import Instant
from horarium.platform.database import Database, limits, partition_upkeep
from horarium.platform.database.limits import Cutoffs
from horarium.platform.database.partition_upkeep import Outcome
from horarium.platform.database.partitions import Partition
from horarium.platform.database.tables import (
    approval_votes,
    approvals,
    namespaces,
    run_definitions,
    runs,
    runs_archive,
    step_changes,
    unwanted_tasks,
)

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
class StayingRows:
    """Its rows stay, for rows are forgotten from the front and without a hole."""


def judge(sums: Sums) -> Mark | StayingRows | None:
    """None = nothing is to be said: there are no decisions, or nobody can ask for them any more."""
    if sums.last is None or sums.decided_until is None or sums.stays:
        return None
    if sums.has_older or (sums.nominal or 0) > sums.decided_until:
        return StayingRows()
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
        self._held += [uid for uid, verdict in judged if isinstance(verdict, StayingRows)]
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
    old = limits.cutoff(before, each.c.namespace) >= until
    rows = connection.execute(sa.select(sa.func.quote_literal(each.c.namespace), old)).all()
    if before.usual is not None and before.usual >= until:
        return _one_of("namespace IN", [name for name, is_old in rows if not is_old], "false")
    return _one_of("namespace NOT IN", [name for name, is_old in rows if is_old], "true")


def _one_of(begin: str, names: list[str], none: str) -> str:
    return f"{begin} ({', '.join(names)})".replace("%", "%%") if names else none


# Runs that one transaction looks at.
_RUN_BATCH = 1_000


def _table(part: Partition, like: Table) -> Table:
    return like.to_metadata(sa.MetaData(), name=part.name)


class ArchiveWeek:
    """One transaction a step: what hangs on some of its runs, then the drop."""

    def __init__(self, database: Database, part: Partition, before: Cutoffs) -> None:
        self._database = database
        self._part = part
        self._before = before
        self._runs = _table(part, runs_archive)
        self._days: dict[str, int] = {}
        self._staying: list[bytes] | None = None
        self._after: bytes | None = b""

    def step(self) -> Outcome | None:
        """None = there is more to do."""
        if self._staying is None:
            self._staying = self._database.read(self._find_staying)
            return Outcome.LEFT if len(self._staying) > partition_upkeep.MOST_MOVED else None
        if self._after is None:
            return partition_upkeep.drop(self._database, self._part, "run_id", self._staying, self._is_as_found)
        outcome = partition_upkeep.in_turn(self._database, self._strip_some)
        return None if outcome is Outcome.DONE else outcome

    def _find_staying(self, connection: Connection) -> list[bytes]:
        """Whole trees, by their roots; of a root that lies elsewhere and is still there, too."""
        self._days = limits.own_days(connection, self._before.kept)
        mine, root = self._runs, runs_archive.alias("root")
        of_root = sa.select(sa.or_(~self._is_old(root), root.c.run_id < self._lowest()))
        of_root = of_root.where(root.c.run_id == mine.c.root_run_id).correlate(mine)
        is_root = sa.or_(mine.c.root_run_id.is_(None), mine.c.root_run_id == mine.c.run_id)
        stays = sa.case((is_root, ~self._is_old(mine)), else_=sa.func.coalesce(of_root.scalar_subquery(), sa.false()))
        partition_upkeep.take_time(connection)
        limit = partition_upkeep.MOST_MOVED + 1
        return list(connection.execute(sa.select(mine.c.run_id).where(stays).limit(limit)).scalars())

    def _is_as_found(self, connection: Connection) -> bool:
        """No namespace has got other days meanwhile."""
        return limits.own_days(connection, self._before.kept) == self._days

    def _is_old(self, table: sa.FromClause) -> sa.ColumnElement[bool]:
        old = table.c.finished_at < limits.cutoff(self._before, table.c.namespace)
        return sa.func.coalesce(old, sa.false())

    def _lowest(self) -> bytes:
        return self._part.low if isinstance(self._part.low, bytes) else b""

    def _strip_some(self, connection: Connection) -> Outcome:
        if not self._is_as_found(connection):
            return Outcome.BUSY
        mine = self._runs.c.run_id
        found = sa.select(mine).where(mine > self._after).order_by(mine).limit(_RUN_BATCH)
        ids = list(connection.execute(found).scalars())
        staying = set(self._staying or ())
        going = [each for each in ids if each not in staying]
        later = sa.select(runs_archive.c.run_id).where(
            # As the condition of the index stands there.
            sa.text("root_run_id IS NOT NULL"),
            runs_archive.c.root_run_id.in_(going),
            runs_archive.c.run_id >= self._part.high,
        )
        steps = list(connection.execute(later).scalars()) if going else []
        _strip(connection, [*going, *steps])
        if steps:
            connection.execute(sa.delete(runs_archive).where(runs_archive.c.run_id.in_(steps)))
        self._after = ids[-1] if len(ids) == _RUN_BATCH else None
        return Outcome.DONE


def _strip(connection: Connection, run_ids: Sequence[bytes]) -> None:
    """All but events and lines, which have weeks of their own."""
    if not run_ids:
        return
    forget_of_runs(connection, run_ids)
    asked = sa.select(approvals.c.approval_id).where(approvals.c.run_id.in_(run_ids))
    connection.execute(sa.delete(approval_votes).where(approval_votes.c.approval_id.in_(asked)))
    for table in (run_definitions, approvals, step_changes, unwanted_tasks):
        connection.execute(sa.delete(table).where(table.c.run_id.in_(run_ids)))


class WeekOfRuns:
    """Drop a week of `run_events` or `run_logs`; each step is one transaction."""

    def __init__(self, database: Database, part: Partition, like: Table) -> None:
        self._database = database
        self._part = part
        self._rows = _table(part, like)
        self._is_left = False
        self._after: bytes | None = b""

    def step(self) -> Outcome | None:
        """None = there is more to do."""
        if self._is_left:
            return self._sweep()
        staying = self._database.read(self._find_staying)
        if staying is not None:
            return partition_upkeep.drop(self._database, self._part, "run_id", staying, lambda _connection: True)
        self._is_left = True
        return None

    def _sweep(self) -> Outcome | None:
        outcome = partition_upkeep.in_turn(self._database, self._delete_some)
        if outcome is not Outcome.DONE:
            return outcome
        return Outcome.LEFT if self._after is None else None

    def _find_staying(self, connection: Connection) -> list[bytes] | None:
        """The runs that are still there, of all that may have rows here; None = they have too many."""
        limit = partition_upkeep.MOST_MOVED + 1
        there: list[bytes] = []
        for table in (runs, runs_archive):
            born = sa.select(table.c.run_id).where(table.c.run_id >= self._lowest(), table.c.run_id < self._part.high)
            there += connection.execute(born.limit(limit)).scalars()
        if len(there) >= limit:
            return None
        partition_upkeep.take_time(connection)
        some = f"SELECT FROM {self._part.name} WHERE run_id = ANY(%s) LIMIT {limit}"
        number: int = connection.exec_driver_sql(f"SELECT count(*) FROM ({some}) AS found", (there,)).scalar_one()
        return there if number < limit else None

    def _lowest(self) -> bytes:
        return self._part.low if isinstance(self._part.low, bytes) else b""

    def _delete_some(self, connection: Connection) -> Outcome:
        mine = self._rows.c.run_id
        found = sa.select(mine).where(mine > self._after).distinct().order_by(mine).limit(_RUN_BATCH)
        ids = list(connection.execute(found).scalars())
        there: set[bytes] = set()
        for table in (runs, runs_archive):
            there |= set(connection.execute(sa.select(table.c.run_id).where(table.c.run_id.in_(ids))).scalars())
        connection.execute(sa.delete(self._rows).where(mine.in_([each for each in ids if each not in there])))
        self._after = ids[-1] if len(ids) == _RUN_BATCH else None
        return Outcome.DONE
