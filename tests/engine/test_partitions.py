"""Tables by weeks on PostgreSQL: made before they begin, whatever is in the way, by one process at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs
from world import FakeClock

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.core.policy.limits import RetentionSubject
from horarium.engine.partitions import PartitionUpkeep, UpkeepResult
from horarium.features.history import rows as history
from horarium.features.history.rows import append
from horarium.instant import DAY, SECOND, from_rfc3339
from horarium.platform.database import Connection, Database, partition_upkeep
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.limits import Cutoffs
from horarium.platform.database.partition_upkeep import Outcome
from horarium.platform.database.partitions import TABLES, Partition
from horarium.platform.ids import id_at, new_id

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"])
MONDAY = from_rfc3339("2026-11-16T00:00:00Z")
NOW = MONDAY + 2 * DAY


def names(database: Database, table: str) -> list[str]:
    found = database.read(partition_upkeep.there)
    return [each.name.removeprefix(f"{table}_") for each in found if each.table == table]


def write(database: Database, uid: bytes, sequence: int, *, at: int) -> None:
    database.write(
        lambda c: append(c, [(uid, "default", [NewEvent(sequence, EventType.MISSED, at, at, None, {})])], now=at)
    )


def in_table(database: Database, table: str) -> int:
    return int(database.read(lambda c: c.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()))


def upkeep(database: Database, now: int = NOW) -> PartitionUpkeep:
    return PartitionUpkeep(database, FakeClock(now), lambda _now: (None, None))


def whole_pass(chore: PartitionUpkeep) -> UpkeepResult:
    steps = [chore.step()]
    while steps[-1].more:
        steps.append(chore.step())
        assert len(steps) < 500, "a pass never ends"
    return UpkeepResult(sum(each.made for each in steps), sum(each.dropped for each in steps), busy=steps[-1].busy)


def test_this_week_and_four_more_are_made_once_and_what_was_in_the_way_moves(database: Database) -> None:
    uid = new_id()
    write(database, uid, 1, at=MONDAY - 1)
    write(database, uid, 2, at=NOW)
    weeks = ["2026w47", "2026w48", "2026w49", "2026w50", "2026w51", "default"]
    assert whole_pass(upkeep(database)) == UpkeepResult(made=5 * len(TABLES))
    assert whole_pass(upkeep(database)) == UpkeepResult()
    assert [names(database, table) for table in TABLES] == [weeks] * len(TABLES)
    assert [in_table(database, f"history_{part}") for part in ("default", "2026w47")] == [1, 1]
    write(database, uid, 3, at=MONDAY + 7 * DAY)
    assert in_table(database, "history_2026w48") == 1
    assert [each.sequence for each in database.read(lambda c: history.read(c, uid, limit=9))] == [1, 2, 3]
    with pytest.raises(UniqueConflict) as taken:
        write(database, uid, 3, at=MONDAY + 7 * DAY)
    assert taken.value.constraint == "history_in_order"
    assert whole_pass(upkeep(database, NOW + 7 * DAY)) == UpkeepResult(made=len(TABLES))


def test_a_week_that_has_much_in_the_default_partition_stays_there(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_upkeep, "MOST_MOVED", 1)
    for number in (1, 2):
        write(database, new_id(), number, at=NOW)
    with capture_logs() as told:
        chore = upkeep(database)
        assert [whole_pass(chore).made for _ in range(2)] == [5 * len(TABLES) - 1, 0]
    assert names(database, "history") == ["2026w48", "2026w49", "2026w50", "2026w51", "default"]
    assert [each["table"] for each in told if each["event"] == "partition_not_created"] == ["history_2026w47"]


@contextmanager
def held(database: Database, statement: str) -> Iterator[None]:
    with database.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(statement)
        yield


def test_whoever_comes_second_leaves_it_to_the_first(database: Database) -> None:
    with held(database, f"SELECT pg_advisory_xact_lock({partition_upkeep._LOCK})"):
        assert whole_pass(upkeep(database)) == UpkeepResult(busy=True)
    assert whole_pass(upkeep(database)).made == 5 * len(TABLES)


def test_two_processes_that_have_both_looked_make_each_week_once(
    database: Database, open_another: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found what is missing before either begins; the slower one finds it made when its turn comes."""
    both_looked, make = threading.Barrier(2), partition_upkeep.make

    def late(there: Database, new: Partition) -> Outcome:
        if not both_looked.broken and new.name == "history_2026w47":
            both_looked.wait(60)
        while (outcome := make(there, new)) is Outcome.BUSY:
            time.sleep(0.01)  # not left for the next pass, so that both come to every week
        return outcome

    monkeypatch.setattr(partition_upkeep, "make", late)
    with ThreadPoolExecutor(2) as threads, capture_logs() as told:
        passes = [threads.submit(whole_pass, upkeep(each)) for each in (database, open_another())]
        made = [each.result(120).made for each in passes]
    assert (sum(made), [each for each in told if each["log_level"] == "error"]) == (5 * len(TABLES), [])
    assert len(names(database, "history")) == 6


def test_a_week_that_another_process_drops_meanwhile_is_passed_over(
    database: Database, open_another: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetting(on: Database) -> PartitionUpkeep:
        before = Cutoffs(RetentionSubject.RUNS, MONDAY + 9 * DAY, MONDAY + 9 * DAY, MONDAY + 9 * DAY)
        return PartitionUpkeep(on, FakeClock(MONDAY + 9 * DAY), lambda _now: (None, before))

    whole_pass(upkeep(database))
    first, second = forgetting(database), forgetting(open_another())
    drop, dropped = second._drop, list[str]()

    def after_the_other(part: Partition, *given: Any) -> Any:
        dropped.append(part.name)
        if len(dropped) == 1:
            whole_pass(first)
        return drop(part, *given)

    monkeypatch.setattr(second, "_drop", after_the_other)
    assert (whole_pass(second).dropped, dropped) == (0, ["runs_archive_2026w47"])


def test_a_lock_that_is_not_given_is_waited_for_briefly(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_upkeep, "LOCK_WAIT", "20ms")
    with held(database, "LOCK TABLE history_default IN ACCESS SHARE MODE"):
        assert whole_pass(upkeep(database)) == UpkeepResult(busy=True)
    assert names(database, "history") == ["default"]


def test_a_role_that_may_not_make_tables_goes_on_without(database: Database) -> None:
    def as_guest(work: Any) -> Any:
        def wrapped(connection: Connection) -> Any:
            connection.exec_driver_sql("SET LOCAL ROLE pg_read_all_data")
            return work(connection)

        return wrapped

    guest = upkeep(database)
    write_as_owner = database.write
    with capture_logs() as told:
        database.write = lambda work: write_as_owner(as_guest(work))  # type: ignore[method-assign]  # for this test
        assert [whole_pass(guest), whole_pass(guest)] == [UpkeepResult(), UpkeepResult()]
    assert len([each for each in told if each["log_level"] == "warning"]) == 1
    assert names(database, "history") == ["default"]


def test_the_weeks_of_what_belongs_to_runs_are_ranges_of_their_ids(database: Database) -> None:
    whole_pass(upkeep(database))
    run_id = id_at(NOW + SECOND)[:8] + bytes(8)
    row = "INSERT INTO run_events VALUES (%s, 1, 'run.started', 0, '{}')"
    database.write(lambda c: c.exec_driver_sql(row, (run_id,)))
    assert in_table(database, "run_events_2026w47") == 1
    plan = "EXPLAIN SELECT * FROM run_events WHERE run_id = %s"
    found = database.read(lambda c: c.exec_driver_sql(plan, (run_id,)).scalars().all())
    assert "run_events_2026w47" in found[0] or "run_events_2026w47" in found[1]
    assert not any("default" in line for line in found)
