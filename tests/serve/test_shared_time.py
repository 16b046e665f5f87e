"""A machine whose clock is forty seconds off creates and decides as all others on its database do."""

from __future__ import annotations

from pathlib import Path

import pytest

from horarium.features.cluster import verification
from horarium.features.runs import service as run_service
from horarium.features.schedules import rows as stored
from horarium.features.schedules import service as schedule_service
from horarium.instant import SECOND, Instant
from horarium.platform.caller import Caller
from horarium.platform.clock import SystemClock
from horarium.platform.settings import Settings
from horarium.platform.wire import Role
from horarium.serve.service import Service, open_service

ADMIN = Caller("root", Role.ADMIN)
EVERY_SECOND = {
    "schedule_id": "s",
    "intervals": [{"every": "PT1S"}],
    "action": {"kind": "pull", "workflow_type": "w", "queue": "q"},
    "overlap_policy": "allow_all",
}


class OffClock(SystemClock):
    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def now(self) -> Instant:
        return super().now() + self.seconds * SECOND


def create(service: Service) -> tuple[Instant, Instant, Instant]:
    """When it was, when the schedule says that it was created, and its first due time."""
    before = SystemClock().now()
    schedule_service.create(service.resources, ADMIN, EVERY_SECOND)
    row = service.database.read(lambda connection: stored.find(connection, "default", "s"))
    assert row is not None
    assert row.next_due is not None
    return before, row.created_at, row.next_due


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
@pytest.mark.parametrize("seconds", [-40, 40])
def test_a_schedule_is_created_at_the_time_of_the_database(empty_url: str, tmp_path: Path, seconds: int) -> None:
    with open_service(Settings(database=empty_url, data_dir=tmp_path), clock=OffClock(seconds)) as service:
        service.clock.measure()
        before, created, first = create(service)
        assert abs(created - before) < 20 * SECOND
        assert created < first <= created + SECOND
        while service.engine.ticker.step().more:
            pass
        born = run_service.list_runs(service.resources, ADMIN, schedule_id="s").runs
        assert all(run.row.nominal > created for run in born)
        assert list(verification.verify(service.resources, ADMIN)) == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_on_sqlite_the_clock_of_the_machine_is_what_all_share(empty_url: str, tmp_path: Path) -> None:
    with open_service(Settings(database=empty_url, data_dir=tmp_path), clock=OffClock(40)) as service:
        service.clock.measure()
        before, created, _ = create(service)
        assert created > before + 30 * SECOND


def test_every_part_of_a_process_has_the_same_clock(empty_url: str, tmp_path: Path) -> None:
    with open_service(Settings(database=empty_url, data_dir=tmp_path)) as service:
        assert service.resources.clock is service.clock
        assert service.engine.clock is service.clock
        assert all(
            launcher._clock is service.clock  # type: ignore[attr-defined]  # each has one
            for launcher in (service.registry.get(kind) for kind in service.registry)
        )
