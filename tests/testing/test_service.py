"""The service for tests: its clock moves when told, and what it does is what a real one does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from horarium import Horarium
from horarium.core.document.states import RunState
from horarium.features.runs.model import Run
from horarium.instant import from_rfc3339
from horarium.testing import Accepted, FakeClock, RunFailed, Unreachable, service

NIGHTLY = {"schedule_id": "nightly", "cron_expressions": ["0 2 * * *"], "workflow_type": "report"}


def nominals(runs: list[Run]) -> list[datetime | None]:
    return [run.nominal for run in runs]


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "start",
    ["2026-03-01T00:00:00Z", datetime(2026, 3, 1, tzinfo=UTC), 1_772_323_200_000_000],
    ids=["text", "date", "int"],
)
def test_a_clock_starts_where_it_is_told(start: Any) -> None:
    assert FakeClock(start).now() == from_rfc3339("2026-03-01T00:00:00Z")


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock("2026-03-01T00:00:00Z")
    assert (clock.now(), clock.monotonic()) == (clock.now(), 0.0)
    clock.advance(1.5)
    assert (repr(clock), clock.monotonic()) == ("FakeClock('2026-03-01T00:00:01.500000Z')", 1.5)


def test_a_step_back_of_the_clock_is_no_passing_of_time() -> None:
    clock = FakeClock("2026-03-01T00:00:00Z")
    clock.set("2026-03-01T00:01:00Z")
    clock.set("2026-03-01T00:00:00Z")
    assert clock.monotonic() == 60.0
    with pytest.raises(ValueError, match="must not be negative"):
        clock.advance(-1)


# ── the service ──────────────────────────────────────────────────────────────────────────────────────


def test_each_night_has_its_run() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(NIGHTLY)
        horarium.advance(days=3)
        assert nominals(horarium.runs("nightly")) == [datetime(2026, 3, day, 2, tzinfo=UTC) for day in (1, 2, 3)]
        assert {run.state for run in horarium.runs()} == {RunState.SUCCEEDED}
        assert [request.schedule_id for request in horarium.launcher.deliveries] == ["nightly"] * 3
        assert horarium.verify() == []


def test_nothing_happens_before_its_time() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(NIGHTLY)
        horarium.advance_to("2026-03-01T01:59:59Z")
        assert horarium.runs() == []
        horarium.advance(1)
        assert len(horarium.runs()) == 1
        with pytest.raises(ValueError, match="in the past"):
            horarium.advance_to("2026-03-01T00:00:00Z")


def test_what_comes_after_the_end_of_a_pause_happens_when_it_is_due() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(schedule_id="report", cron_expressions=["0 2 * * *"], workflow_type="report")
        horarium.http().post("/api/schedules/report/pause", json={"until": "2026-03-01T01:30:00Z"})
        horarium.advance(days=2)
        assert [run.created_at for run in horarium.runs()] == [
            datetime(2026, 3, 1, 2, tzinfo=UTC),
            datetime(2026, 3, 2, 2, tzinfo=UTC),
        ]


def test_a_run_stays_open_until_the_test_ends_it() -> None:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted()) as horarium:
        horarium.create(schedule_id="often", cron_expressions=["*/10 * * * *"], workflow_type="x")
        horarium.advance(minutes=20)
        [run] = horarium.runs()
        events = [event.event_type.value for event in horarium.history("often")]
        assert events == ["ScheduleCreated", "ScheduleTriggered", "ScheduleTriggerSkipped"]
        horarium.finish(run, {"rows": 1})
        horarium.advance(minutes=10)
        first, second = horarium.runs()
        assert (first.state, first.result, second.state) == (RunState.SUCCEEDED, {"rows": 1}, RunState.RUNNING)
        horarium.fail(second, "no disk", error_class="disk")
        assert (horarium.runs()[1].state, horarium.runs()[1].error) == (RunState.FAILED, "no disk")


def test_what_it_answers_is_what_the_client_answers() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium, horarium.client() as client:
        created = client.create_schedule(NIGHTLY)
        horarium.advance(days=1)
        [run] = horarium.runs("nightly")
        assert (created.schedule_id, run) == ("nightly", client.get_run(run.run_id))
        events = list(client.iter_schedule_history("nightly"))
        assert [(each.sequence, each.recorded_at) for each in horarium.history("nightly")] == [
            (each.sequence, each.recorded_at) for each in events
        ]


def test_a_run_that_is_never_answered_times_out_at_its_deadline() -> None:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted()) as horarium:
        horarium.create(NIGHTLY, timeout_seconds=60, retry_policy={"max_retries": 0})
        horarium.advance(hours=3)
        [run] = horarium.runs()
        assert (run.state, run.finished_at) == (RunState.TIMED_OUT, datetime(2026, 3, 1, 2, 1, tzinfo=UTC))


def test_a_script_says_what_comes_of_the_first_deliveries() -> None:
    with service(at="2026-03-01T00:00:00Z", script=[Unreachable("no route")]) as horarium:
        horarium.create(NIGHTLY)
        horarium.advance(days=1)
        assert len(horarium.launcher.deliveries) == 2
        assert len(horarium.launcher.keys) == 1
        assert horarium.runs()[0].state is RunState.SUCCEEDED


def test_time_that_passes_while_the_service_is_down_is_missed() -> None:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(NIGHTLY)
        horarium.settle()
        horarium.sleep(days=5)
        horarium.settle()
        [run] = horarium.runs()
        assert run.covers is not None
        assert run.covers.count == 5
        assert horarium.verify() == []


def test_the_tasks_of_an_application_are_really_called() -> None:
    app = Horarium(data_dir="unused")
    called: list[str] = []

    @app.schedule("0 2 * * *", inputs_rotation=[{"city": "Ankara"}, {"city": "Bursa"}])
    def visit(city: str) -> str:
        called.append(city)
        return city.upper()

    with service(at="2026-03-01T00:00:00Z", app=app) as horarium:
        horarium.advance(days=2)
        assert called == ["Ankara", "Bursa"]
        assert [run.result for run in horarium.runs("visit")] == ["ANKARA", "BURSA"]


def test_it_can_be_used_inside_a_running_loop() -> None:
    async def test() -> int:
        with service(at="2026-03-01T00:00:00Z", answer=RunFailed("no")) as horarium:
            horarium.create(NIGHTLY)
            horarium.advance(days=1)
            return len(horarium.runs())

    assert asyncio.run(test()) == 1


def test_two_services_know_nothing_of_each_other() -> None:
    with service() as one, service() as other:
        one.create(NIGHTLY)
        one.advance(days=2)
        assert (len(one.runs()), other.runs()) == (2, [])
