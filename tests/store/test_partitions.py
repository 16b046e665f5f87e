"""A database of the release before gets its tables by weeks on PostgreSQL, and nobody misses anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.record import NewEvent
from horarium.ids import id_at, new_id
from horarium.instant import DAY
from horarium.schedule.event import EventType
from horarium.store import migrate as migration
from horarium.store import partition_upkeep
from horarium.store.database import Database, open_database
from horarium.store.errors import StoreUnavailable
from horarium.store.history import events as history
from horarium.store.history.append import append
from horarium.store.migrate import migrate
from horarium.store.partitions import WEEK, Partition, Week, bounds, week_of
from horarium.store.tables import history as history_table
from horarium.store.tables import run_events

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"])
FAR = 4_000_000_000_000_000


@pytest.fixture
def older(empty_url: str) -> Iterator[Database]:
    """As the release before left it: with rows of the past, and one by a clock that was far ahead."""
    database = open_database(empty_url)
    migrate(database, until="0018")
    yield database
    database.close()


def write(database: Database, uid: bytes, sequence: int, at: int) -> None:
    new = NewEvent(sequence, EventType.MISSED, at, at, None, {"n": sequence})
    database.write(lambda c: append(c, [(uid, "default", [new])], now=at))


def all_of(database: Database, statement: str) -> list[Any]:
    return [tuple(row) for row in database.read(lambda c: c.exec_driver_sql(statement).all())]


def test_rows_rights_and_numbers_stay(older: Database) -> None:
    uid, old, ahead = new_id(), new_id(), id_at(FAR)
    for number, at in enumerate((1_000, 2_000, FAR), 1):
        write(older, uid, number, at)

    def more(connection: Connection) -> None:
        for run_id in (old, ahead):
            row = {"run_id": run_id, "sequence": 1, "event_type": "run.started", "recorded_at": 5, "payload": "{}"}
            connection.execute(sa.insert(run_events).values(**row))
        connection.exec_driver_sql("GRANT SELECT ON history TO pg_monitor WITH GRANT OPTION")
        connection.exec_driver_sql("GRANT SELECT ON v_history TO PUBLIC")

    older.write(more)
    told, views = "SELECT * FROM history ORDER BY feed_id", "SELECT * FROM v_history ORDER BY feed_id"
    rights = (
        "SELECT has_table_privilege('pg_monitor', 'history', 'SELECT WITH GRANT OPTION'), "
        "has_table_privilege('pg_signal_backend', 'v_history', 'SELECT')"
    )
    before = [all_of(older, statement) for statement in (told, views, rights)]
    assert migrate(older)[0] == "0019"
    assert [all_of(older, statement) for statement in (told, views, rights)] == before
    found = {
        each.name: all_of(older, f"SELECT count(*) FROM {each.name}")[0][0]
        for each in older.read(partition_upkeep.there)
    }
    assert found == {
        "history_before": 2, "history_default": 1, "run_events_before": 1, "run_events_default": 1,
        "run_logs_default": 0, "runs_archive_default": 0,
    }  # fmt: skip
    write(older, uid, 4, 3_000)
    newest = older.read(lambda c: history.read(c, uid, after_sequence=3, limit=9))
    assert [(each.feed_id, each.transaction_id is not None) for each in newest] == [(4, True)]


def test_nobody_waits_for_a_migration_that_waits_for_an_open_transaction(
    older: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup may be open for hours; everybody else would wait behind the migration."""
    monkeypatch.setattr(migration._scripts().get_revision("0019").module, "LOCK_WAIT", "20ms")
    with older.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SELECT FROM history LIMIT 1")
        with pytest.raises(StoreUnavailable, match=r"nothing was migrated: .* is still open"):
            migrate(older)
    assert migrate(older)[0] == "0019"


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
