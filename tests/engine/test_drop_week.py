"""A week that is over is dropped whole on PostgreSQL, and nobody can tell it from one that went row by row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import databases
import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, Office
from structlog.testing import capture_logs
from world import FakeClock

from horarium.core.document.states import RunState
from horarium.engine.partitions import PartitionUpkeep, UpkeepResult
from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.features.cluster.verification import Gap, verify
from horarium.features.forecast import rows as forecast_rows
from horarium.features.forecast.service import explain
from horarium.features.history import entry_rows
from horarium.features.history import rows as streams
from horarium.features.runs import retention_rows
from horarium.features.schedules import lifecycle, triggers
from horarium.features.tenants import service as tenant_service
from horarium.instant import DAY, HOUR
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, Database, open_database, partition_upkeep, partitions
from horarium.platform.database.partition_upkeep import Outcome
from horarium.platform.database.partitions import HISTORY, missing, week_of
from horarium.platform.database.tables import checkpoints, history, positions
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.wire import Role

# Ids carry the machine's time, which must not lie after the times of the test.
START = week_of(time.time_ns() // 1_000).end + 8 * HOUR
DAYS = 28
KEEP = RetentionOptions(keep_history_days=30)
KEEPER = Caller("kate", Role.ADMIN, namespace="keeper", source="test")
SCHEDULES = ("plain", "paused", "deleted")


def live(database: Database) -> None:
    """Four weeks of decisions, with all that is done to schedules meanwhile."""
    for new in missing(HISTORY, [], START):
        assert partition_upkeep.make(database, new) is Outcome.DONE
    office = Office.on(database, FakeClock(START))
    tenant_service.create_namespace(office.resources, ADMIN, "keeper")
    for name, days in (("keeper", None), ("default", 9)):
        tenant_service.change_namespace(office.resources, ADMIN, name, retention={"keep_history_days": days})
    daily: dict[str, Any] = {"spec": {"cron_expressions": ["0 6 * * *"]}, "overlap_policy": "skip"}
    for name in SCHEDULES:
        office.create(name, **daily)
    office.create("kept", caller=KEEPER, **daily)
    for day in range(0, DAYS, 2):
        if day in (4, 18):
            (lifecycle.pause if day == 4 else lifecycle.resume)(office.resources, ADMIN, "paused")
        if day == 10:
            triggers.trigger(office.resources, ADMIN, "plain")
            lifecycle.delete(office.resources, ADMIN, "deleted")
        office.tick(2 * 86_400)
        for run in office.runs("plain"):
            if run.state is RunState.READY:
                office.end(run)


def whole_pass(chore: PartitionUpkeep | RetentionLoop) -> list[Any]:
    steps: list[Any] = [chore.step()]
    while steps[-1].more:
        steps.append(chore.step())
        assert len(steps) < 500, "a pass never ends"
    return steps


@pytest.fixture(scope="module")
def lived(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """The name of a database in which all that has happened, and that nobody uses."""
    name = databases._create(postgres_server, template=postgres_template)
    database = open_database(databases._address(postgres_server, name))
    live(database)
    database.close()
    yield name
    databases._drop(postgres_server, name)


@pytest.fixture
def office_of_weeks(postgres_server: str, lived: str) -> Iterator[Callable[[], Office]]:
    """The same once more, each time, a day after all that."""
    names: list[str] = []
    opened: list[Database] = []

    def make() -> Office:
        names.append(databases._create(postgres_server, template=lived))
        opened.append(open_database(databases._address(postgres_server, names[-1])))
        return Office.on(opened[-1], FakeClock(START + (DAYS + 1) * DAY))

    yield make
    for each in opened:
        each.close()
    for name in names:
        databases._drop(postgres_server, name)


def parts(database: Database) -> list[str]:
    return [each.name for each in database.read(partition_upkeep.there) if each.table == HISTORY]


def rows(database: Database, table: sa.Table) -> list[Any]:
    statement = sa.select(table).order_by(*table.primary_key.columns)
    return [tuple(row) for row in database.read(lambda c: c.execute(statement).all())]


def told(database: Database) -> list[Any]:
    """By the feed, which waits for transactions of other tests on the same server."""
    for _ in range(6_000):
        found, _ = database.read(lambda c: entry_rows.newest(c, None, limit=10_000))
        if len(found) == len(rows(database, history)):
            return [tuple(row) for row in found]
        time.sleep(0.01)
    raise AssertionError("the feed is held back for ever")


def doors(office: Office) -> dict[str, Any]:
    """What each of them says."""
    database = office.resources.database
    uids = database.read(lambda c: c.execute(sa.select(positions.c.schedule_uid)).scalars().all())
    first = START // DAY * DAY + 6 * HOUR
    said: dict[str, Any] = {
        "verify": [*verify(office.resources, ADMIN), *verify(office.resources, KEEPER)],
        "rows": rows(database, history),
        "checkpoints": rows(database, checkpoints),
        "feed": told(database),
        "streams": [database.read(lambda c, uid=uid: streams.read(c, uid, limit=1_000)) for uid in sorted(uids)],
        "occurrences": sorted(
            database.read(lambda c: forecast_rows.in_window(c, "default", 0, 2**62, 1_000))[0], key=repr
        ),
    }
    for name in ("plain", "paused"):
        said[f"explain {name}"] = [explain(office.resources, ADMIN, name, first + day * DAY) for day in range(DAYS)]
    return said


def test_every_door_says_the_same_as_after_rows_were_deleted(office_of_weeks: Callable[[], Office]) -> None:
    offices = [office_of_weeks(), office_of_weeks()]
    by_weeks, by_rows = (each.resources.database for each in offices)
    forgetting = [RetentionLoop(each.resources.database, each.clock, KEEP) for each in offices]
    before = parts(by_rows)
    assert sum(step.dropped for step in drop(offices[0])) == 2
    swept = [sum(step.history for step in whole_pass(each)) for each in forgetting]
    assert swept[0] == 0 < swept[1]
    assert [name for name in before if name not in parts(by_weeks)] == sorted(before)[:2]
    assert parts(by_rows) == before
    one, other = map(doors, offices)
    assert one.keys() == other.keys()
    for name, said in one.items():
        assert said == other[name], name
    assert one["verify"] == []
    assert len(one["checkpoints"]) == 3
    assert sum(step.dropped for step in drop(offices[0])) == 0


@pytest.fixture
def office(office_of_weeks: Callable[[], Office]) -> Office:
    return office_of_weeks()


@pytest.fixture(autouse=True)
def _no_more_weeks(lived: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "AHEAD", -1)


def drop(office: Office) -> list[UpkeepResult]:
    chore = RetentionLoop(office.resources.database, office.clock, KEEP)
    return whole_pass(PartitionUpkeep(office.resources.database, office.clock, chore.cutoffs))


def test_a_week_of_which_much_has_to_stay_goes_row_by_row(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_upkeep, "MOST_MOVED", 3)
    before = parts(office.resources.database)
    with capture_logs() as logged:
        assert sum(each.dropped for each in drop(office)) == 0
    assert [each["event"] == "partition_deleted_by_row" for each in logged].count(True) == 1
    assert parts(office.resources.database) == before
    whole_pass(RetentionLoop(office.resources.database, office.clock, KEEP))
    assert list(verify(office.resources, ADMIN)) == []
    assert len(rows(office.resources.database, checkpoints)) == 3


def test_a_decision_that_must_wait_keeps_those_behind_it(office: Office) -> None:
    """Of a schedule whose position was set back: history is forgotten from the front, and not beyond the position."""
    database = office.resources.database
    plain = sa.select(schedules_table.c.schedule_uid).where(schedules_table.c.schedule_id == "plain")
    uid = database.read(lambda c: c.execute(plain).scalar_one())
    back = sa.update(positions).where(positions.c.schedule_uid == uid).values(decided_until=START + 2 * DAY)
    database.write(lambda c: c.execute(back))
    drop(office)
    kept = [each.sequence for each in database.read(lambda c: streams.read(c, uid, limit=1_000))]
    assert kept == list(range(1, kept[-1] + 1))
    assert uid not in {row[0] for row in rows(database, checkpoints)}


def test_what_somebody_holds_is_dropped_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_upkeep, "LOCK_WAIT", "20ms")
    database = office.resources.database
    with database.engine.connect() as connection, connection.begin():
        connection.execute(sa.select(history).limit(1))
        steps = drop(office)
    assert (steps[-1].busy, sum(each.dropped for each in steps)) == (True, 0)
    assert sum(each.dropped for each in drop(office)) == 2


def test_a_number_that_was_given_twice_is_found(office: Office) -> None:
    """Only the same number at the same instant is refused where history is kept by weeks; an audit counts."""
    database = office.resources.database
    columns = "schedule_uid, sequence, namespace, event_type, nominal, nominal_last, run_id, payload"
    twice = f"INSERT INTO history ({columns}, recorded_at) SELECT {columns}, recorded_at + 1 FROM history"
    newest = "WHERE schedule_uid = (SELECT schedule_uid FROM schedules WHERE schedule_id = 'plain') AND sequence = 9"
    database.write(lambda c: c.exec_driver_sql(f"{twice} {newest}"))
    assert [type(finding) for finding in verify(office.resources, ADMIN)][:1] == [Gap]


def test_a_large_past_is_not_read_whole_to_find_that_nothing_is_old(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def nothing(_connection: Connection, **named: Any) -> bool:
        asked.append(named)
        return False

    monkeypatch.setattr(retention_rows, "has_old_history", nothing)
    for most in (partition_upkeep.LITTLE_BYTES, -1):
        monkeypatch.setattr(partition_upkeep, "LITTLE_BYTES", most)
        whole_pass(RetentionLoop(office.resources.database, office.clock, KEEP))
    assert len(asked) == 1
    assert len(rows(office.resources.database, checkpoints)) == 3


def test_days_that_change_while_a_week_is_looked_at_count(office: Office) -> None:
    database = office.resources.database
    chore = PartitionUpkeep(database, office.clock, RetentionLoop(database, office.clock, KEEP).cutoffs)
    assert [chore.step().more for _ in range(2)] == [True, True]  # the checkpoints of the first week are made
    kept = rows(database, history)
    tenant_service.change_namespace(office.resources, ADMIN, "default", retention={"keep_history_days": None})
    assert [each.busy for each in whole_pass(chore)] == [True]
    assert rows(database, history) == kept
