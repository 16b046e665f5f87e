"""What `horarium doctor` finds in the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import FakeClock

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.features.history.rows import append
from horarium.instant import MINUTE, SECOND, from_datetime
from horarium.platform.clock import SystemClock
from horarium.platform.database import open_database, partition_upkeep, processes
from horarium.platform.database.partitions import TABLES, missing
from horarium.platform.database.postgres import WRITERS
from horarium.platform.database.tables import step_changes, subscriptions
from horarium.platform.ids import id_at, new_id
from horarium.platform.settings import Settings
from horarium.serve.checkup import Grade, examine
from horarium.testing import Accepted, TestService


@pytest.mark.parametrize("answer", [Accepted(reference="brooms", queued=True)], ids=["queued"])
def test_runs_that_no_worker_takes_are_a_warning(horarium: TestService) -> None:
    action = {"workflow_type": "sweep", "task_queue": "brooms"}
    horarium.create(schedule_id="s", spec={"intervals": [{"every": "PT1H"}]}, action=action)
    horarium.advance(hours=1)

    def warnings(minutes: int) -> list[tuple[Grade, str]]:
        born = from_datetime(horarium.runs()[0].created_at)
        found = examine(horarium.parts.settings, FakeClock(born + minutes * MINUTE))
        return [(check.level, check.found) for check in found if check.name == "queue"]

    assert warnings(4) == []
    [(level, found)] = warnings(6)
    assert level is Grade.WARNING
    assert found.startswith("1 runs have waited for more than 5 minutes for a worker that handles 'sweep'")


def test_steps_whose_workflows_do_not_go_on_are_a_warning(horarium: TestService) -> None:
    ended = horarium.resources.clock.now()
    change = {"change_id": id_at(ended), "run_id": new_id(), "cost": 0, "tokens": 0, "tool_calls": 0, "finish": False}
    horarium.resources.database.write(lambda c: c.execute(step_changes.insert().values(**change)))

    def found(seconds: int) -> list[tuple[Grade, str]]:
        checks = examine(horarium.parts.settings, FakeClock(ended + seconds * SECOND))
        return [(check.level, check.found) for check in checks if check.name == "workflows"]

    assert found(59) == []
    waits = "1 finished steps have waited for more than a minute for their workflows to advance"
    assert found(61) == [(Grade.WARNING, waits)]


def test_a_clock_that_was_ahead_is_a_warning_until_it_has_caught_up(horarium: TestService) -> None:
    now = SystemClock().now()
    info = {processes.AHEAD_UNTIL: now + 60 * MINUTE}
    horarium.resources.database.write(lambda c: processes.beat_lease(c, processes.TICKER, "me", now, 30, info))

    def found(minutes: int) -> list[Grade]:
        checks = examine(horarium.parts.settings, FakeClock(now + minutes * MINUTE))
        return [check.level for check in checks if check.name == "clock" and "decided" in check.found]

    assert (found(0), found(61)) == ([Grade.WARNING], [])


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_weeks_without_a_table_of_their_own_are_a_warning(database_url: str, tmp_path: Path) -> None:
    settings, clock = Settings(database=database_url, data_dir=tmp_path), SystemClock()

    def found() -> list[tuple[Grade, str]]:
        return [(check.level, check.found) for check in examine(settings, clock) if check.name == "partitions"]

    lacking = "a weekly partition for this week or the next is missing; rows go into the default partitions"
    assert found() == [(Grade.WARNING, lacking)]
    database = open_database(database_url)
    for new in missing(TABLES[0], [], clock.now())[:3]:
        partition_upkeep.make(database, new)
    database.close()
    [(level, until)] = found()
    assert (level, until[:33]) == (Grade.OK, "weekly partitions exist until 202")


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_feed_that_is_held_back_is_a_warning_that_names_who_holds_it(database_url: str, tmp_path: Path) -> None:
    database, event = open_database(database_url), NewEvent(1, EventType.CREATED, None, None, None, {})
    settings, now = Settings(database=database_url, data_dir=tmp_path), SystemClock().now()

    def found() -> list[tuple[Grade, str, str]]:
        checks = examine(settings, SystemClock())
        return [(check.level, check.found, check.remedy) for check in checks if check.name == "feed"]

    with database.engine.connect() as stuck:
        stuck.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({WRITERS}), pg_current_xact_id()")
        pid = stuck.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        database.write(lambda c: append(c, [(new_id(), "default", [event])], now=now - 60 * SECOND))
        [(level, told, remedy)] = found()
        assert (level, "streams and subscriptions are delayed" in told) == (Grade.WARNING, True)
        assert remedy == f"end the transactions of these PostgreSQL server processes: {pid}"
    assert found()[0][0] is Grade.OK
    database.close()


def test_a_subscription_that_cannot_be_read_is_a_failure(horarium: TestService) -> None:
    body = {"name": "hook", "kinds": ["run_finished"], "url": "https://example.com/hook", "secret": "c2VjcmV0" * 4}
    horarium.http().post("/api/subscriptions", json=body).raise_for_status()

    def found() -> list[tuple[Grade, str]]:
        checks = examine(horarium.parts.settings, FakeClock())
        return [(check.level, check.found) for check in checks if check.name == "subscriptions"]

    assert found() == []
    broken = subscriptions.update().values(parked_at=1, unreadable_count=7)
    horarium.resources.database.write(lambda c: c.execute(broken))
    assert [level for level, _ in found()] == [Grade.FAILURE, Grade.WARNING]
    assert "7 events" in found()[1][1]
