"""How a week of runs is forgotten whole, on PostgreSQL: first those of the archive, then the events and lines of all.

A tree of runs goes by the end of its root, as it does row by row. What hangs on a run in tables that are whole goes
before it. Of events and lines those stay whose run does: the newest of its schedule, or one that is kept longer. The
few rows that stay move into the partition that takes the rest; where they are many the table stays, and what belongs
to nobody is deleted from it row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.store import cutoffs, partition_upkeep
from horarium.store.cutoffs import Cutoffs
from horarium.store.database import Database
from horarium.store.generated_secrets import forget_of_runs
from horarium.store.partition_upkeep import Outcome
from horarium.store.partitions import Partition
from horarium.store.tables import (
    approval_votes,
    approvals,
    run_definitions,
    runs,
    runs_archive,
    step_changes,
    unwanted_tasks,
)

# Runs that one transaction looks at.
_BATCH = 1_000


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
        self._days = cutoffs.own_days(connection, self._before.kept)
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
        return cutoffs.own_days(connection, self._before.kept) == self._days

    def _is_old(self, table: sa.FromClause) -> sa.ColumnElement[bool]:
        old = table.c.finished_at < cutoffs.cutoff(self._before, table.c.namespace)
        return sa.func.coalesce(old, sa.false())

    def _lowest(self) -> bytes:
        return self._part.low if isinstance(self._part.low, bytes) else b""

    def _strip_some(self, connection: Connection) -> Outcome:
        if not self._is_as_found(connection):
            return Outcome.BUSY
        mine = self._runs.c.run_id
        found = sa.select(mine).where(mine > self._after).order_by(mine).limit(_BATCH)
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
        self._after = ids[-1] if len(ids) == _BATCH else None
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
        found = sa.select(mine).where(mine > self._after).distinct().order_by(mine).limit(_BATCH)
        ids = list(connection.execute(found).scalars())
        there: set[bytes] = set()
        for table in (runs, runs_archive):
            there |= set(connection.execute(sa.select(table.c.run_id).where(table.c.run_id.in_(ids))).scalars())
        connection.execute(sa.delete(self._rows).where(mine.in_([each for each in ids if each not in there])))
        self._after = ids[-1] if len(ids) == _BATCH else None
        return Outcome.DONE
