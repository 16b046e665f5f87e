"""Migrations and queries of partitioned tables, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from later_release import LATER, become_later
from sqlalchemy import Connection

from horarium.instant import DAY
from horarium.platform.database import Database, partition_upkeep
from horarium.platform.database import schema as migration
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.partitions import WEEK, Partition, Week, bounds, week_of
from horarium.platform.database.tables import history as history_table

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"])
FAR = 4_000_000_000_000_000


def test_nobody_waits_for_a_migration_that_waits_for_an_open_transaction(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A backup may be open for hours; all others would wait behind the migration."""
    become_later(monkeypatch, tmp_path)
    monkeypatch.setattr(migration, "LOCK_WAIT", "20ms")
    with database.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SELECT FROM history LIMIT 1")
        with pytest.raises(StoreUnavailable, match=r"Nothing was migrated: .* has locked a table"):
            migration.migrate(database)
    assert migration.migrate(database) == [LATER]


def _scans(connection: Connection, statement: sa.Select[Any]) -> list[str]:
    bound = statement.compile(connection, compile_kwargs={"literal_binds": True})
    lines = connection.exec_driver_sql(f"EXPLAIN (COSTS OFF) {bound}".replace("%", "%%")).scalars()
    return [line.strip() for line in lines]


def test_streams_are_merged_by_the_indexes_of_each_week_and_old_weeks_are_not_looked_at(database: Database) -> None:
    first = week_of(2_000 * DAY)
    for number in range(4):
        week = Week(first.start + number * WEEK)
        new = Partition("history", f"history_{week.name}", *bounds("history", week))
        assert partition_upkeep.make(database, new) is partition_upkeep.Outcome.DONE

    def look(connection: Connection) -> tuple[list[str], list[str], list[str]]:
        # Tables without rows are sorted sooner than they are merged.
        for other in ("seqscan", "bitmapscan", "sort"):
            connection.exec_driver_sql(f"SET LOCAL enable_{other} = off")
        mine = history_table.c.schedule_uid == b"u"
        stream = sa.select(history_table).where(mine).order_by(history_table.c.sequence).limit(9)
        feed = (
            sa.select(history_table)
            .where(history_table.c.namespace == "default")
            .order_by(history_table.c.transaction_id.desc(), history_table.c.feed_id.desc())
            .limit(9)
        )
        late = sa.select(history_table).where(mine, history_table.c.recorded_at >= first.start + 3 * WEEK)
        return _scans(connection, stream), _scans(connection, feed), _scans(connection, late)

    stream, feed, late = database.read(look)
    for plan, index in ((stream, "in_order"), (feed, "feed")):
        assert any("Merge Append" in line for line in plan)
        assert len([line for line in plan if "Index Scan" in line and f"_{index} " in line]) == 5
        assert not any(line.removeprefix("->  ") in ("Sort", "Incremental Sort") for line in plan)
    assert len([line for line in late if "Scan" in line]) == 2
