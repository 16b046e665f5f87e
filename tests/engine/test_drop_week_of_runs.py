"""A week of runs is dropped whole on PostgreSQL, with all that hangs on them, as if they had gone one by one."""

from __future__ import annotations

from typing import Any

import pytest
import run_rows
import sqlalchemy as sa
from sqlalchemy import Connection
from structlog.testing import capture_logs
from world import FakeClock

from horarium.engine.partitions import PartitionUpkeep, UpkeepResult
from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.features.runs import retention_rows
from horarium.instant import DAY, HOUR, Instant, from_rfc3339
from horarium.platform.database import Database, partition_upkeep, partitions
from horarium.platform.database.partition_upkeep import Outcome
from horarium.platform.database.partitions import missing
from horarium.platform.database.tables import (
    approval_votes,
    approvals,
    archived_columns,
    namespaces,
    run_definitions,
    run_events,
    run_logs,
    runs,
    runs_archive,
)
from horarium.platform.ids import id_at

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"])
START = from_rfc3339("2026-11-16T00:00:00Z")
NOW = START + 30 * DAY
KEEP = RetentionOptions(keep_runs_days=14)
TABLES = (runs, runs_archive, run_events, run_logs, run_definitions, approvals, approval_votes)
_number = 0


@pytest.fixture
def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The first two weeks of it can go; a namespace keeps its runs for ever."""
    for table in ("run_events", "run_logs", "runs_archive"):
        for new in missing(table, [], START)[:3]:
            assert partition_upkeep.make(database, new) is Outcome.DONE
    monkeypatch.setattr(partitions, "AHEAD", -1)  # no more are needed
    row = {"namespace": "keeper", "description": "", "created_at": 0, "keep_runs_days": 0}
    database.write(lambda c: c.execute(sa.insert(namespaces).values(**row)))
    return database


def add(database: Database, at: Instant, *, archived: bool = True, **given: Any) -> bytes:
    """A run that was born at an instant and has ended, with all that a run may leave."""
    global _number
    _number += 1
    run_id = id_at(at)[:8] + _number.to_bytes(8, "big")
    ended = {"state": "succeeded", "finished_at": at + HOUR, "created_at": at, "run_id": run_id}
    run_rows.add_run(database, **(ended | given))
    for number in (1, 2):
        run_rows.add_event(database, run_id, number, at)
    approval = run_rows.add_approval(database, run_id, decision="approved")
    vote = {"approval_id": approval, "principal": "ada", "input_hash": "x", "decision": "approve", "voted_at": at}
    line = {"run_id": run_id, "sequence": 1, "attempt": 0, "bytes": 2, "lines": "[]"}

    def rest(connection: Connection) -> None:
        connection.execute(sa.insert(approval_votes).values(**vote))
        connection.execute(sa.insert(run_logs).values(**line))
        connection.execute(sa.insert(run_definitions).values(run_id=run_id, document="{}"))
        if archived:
            mine = sa.select(runs).where(runs.c.run_id == run_id)
            connection.execute(sa.insert(runs_archive).from_select(archived_columns, mine))
            connection.execute(sa.delete(runs).where(runs.c.run_id == run_id))

    database.write(rest)
    return run_id


def step_of(root: bytes) -> dict[str, Any]:
    return {"parent_run_id": root, "root_run_id": root, "node_id": str(_number)}


def everything(connection: Connection) -> dict[str, list[Any]]:
    found = {}
    for table in TABLES:
        ordered = sa.select(table).order_by(*table.primary_key.columns)
        found[table.name] = [tuple(row) for row in connection.execute(ordered)]
    return found


def after_rows(database: Database, roots: list[bytes]) -> dict[str, list[Any]]:
    """What would be left if these had gone row by row."""
    with database.engine.connect() as connection, connection.begin() as tried:
        retention_rows.delete_runs(connection, roots, limit=10_000, runs=runs_archive)
        left = everything(connection)
        tried.rollback()
    return left


def upkeep(database: Database, now: Instant = NOW) -> PartitionUpkeep:
    clock = FakeClock(now)
    return PartitionUpkeep(database, clock, RetentionLoop(database, clock, KEEP).cutoffs)


def whole_pass(chore: PartitionUpkeep) -> UpkeepResult:
    steps = [chore.step()]
    while steps[-1].more:
        steps.append(chore.step())
        assert len(steps) < 500, "a pass never ends"
    return UpkeepResult(sum(each.made for each in steps), sum(each.dropped for each in steps), busy=steps[-1].busy)


def names(database: Database) -> set[str]:
    return {each.name for each in database.read(partition_upkeep.there)}


def test_a_week_of_runs_goes_as_if_they_had_gone_one_by_one(house: Database) -> None:
    sunday = START + 7 * DAY - HOUR
    plain = add(house, START + DAY)
    root = add(house, sunday)
    add(house, sunday + 2 * HOUR, **step_of(root))
    late = add(house, START + DAY, finished_at=NOW - DAY)
    add(house, START + 2 * DAY, **step_of(late))
    add(house, START + 8 * DAY, **step_of(late))
    kept = add(house, START + DAY, namespace="keeper")
    add(house, START + DAY, archived=False)
    young = add(house, START + 15 * DAY)
    expected = after_rows(house, [plain, root])
    assert whole_pass(upkeep(house)).dropped == 6
    assert {name for name in names(house) if "2026w47" in name or "2026w48" in name} == set()
    found = house.read(everything)
    for table, rows in expected.items():
        assert found[table] == rows, table
    assert {late, kept, young} <= {row[0] for row in found["runs_archive"]}
    assert whole_pass(upkeep(house)) == UpkeepResult()


def test_what_hangs_on_a_run_goes_for_many_at_a_time(house: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.features.history.week_rows._RUN_BATCH", 2)
    for hours in range(5):
        add(house, START + DAY + hours * HOUR)
    assert whole_pass(upkeep(house)).dropped == 6
    assert {table: len(rows) for table, rows in house.read(everything).items() if rows} == {}


def test_nothing_goes_before_its_time(house: Database) -> None:
    add(house, START + DAY)
    before = house.read(everything)
    assert whole_pass(upkeep(house, START + 7 * DAY + 14 * DAY)).dropped == 0
    assert house.read(everything) == before
    # A day after the end of the week, so that its last runs have ended.
    assert whole_pass(upkeep(house, START + 7 * DAY + 15 * DAY)).dropped == 3


def test_where_many_stay_only_what_belongs_to_nobody_goes(house: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for hours in range(3):
        add(house, START + DAY + hours * HOUR, archived=False)
    gone = add(house, START + DAY)
    monkeypatch.setattr(partition_upkeep, "MOST_MOVED", 2)
    monkeypatch.setattr("horarium.features.history.week_rows._RUN_BATCH", 2)
    with capture_logs() as told:
        assert whole_pass(upkeep(house)).dropped == 4
    assert sorted(each["table"] for each in told if each["event"] == "partition_deleted_by_row") == [
        "run_events_2026w47",
        "run_logs_2026w47",
    ]
    found = house.read(everything)
    assert len(found["run_events"]) == 6
    assert gone not in {row[0] for table in ("run_events", "run_logs", "runs_archive") for row in found[table]}


def test_events_wait_for_their_runs_and_later_weeks_for_nobody(
    house: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hours in range(3):
        kept = add(house, START + DAY + hours * HOUR, namespace="keeper")
    add(house, START + 8 * DAY, **step_of(kept))
    before = house.read(everything)
    add(house, START + 8 * DAY)
    monkeypatch.setattr(partition_upkeep, "MOST_MOVED", 2)
    chore = upkeep(house)
    assert [whole_pass(chore).dropped for _ in range(2)] == [3, 0]
    assert {name for name in names(house) if "2026w48" in name} == set()
    assert house.read(everything) == before


def test_days_that_change_while_a_week_is_looked_at_count(house: Database) -> None:
    add(house, START + DAY)
    before = house.read(everything)
    chore = upkeep(house)
    assert [chore.step().more for _ in range(2)] == [True, True]  # which runs stay is known
    mine = sa.update(namespaces).where(namespaces.c.namespace == "default")
    house.write(lambda c: c.execute(mine.values(keep_runs_days=0)))
    assert whole_pass(chore) == UpkeepResult(busy=True)
    assert house.read(everything) == before
    assert whole_pass(chore).dropped == 6
    assert house.read(everything) == before
