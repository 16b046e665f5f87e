"""Log events about failures name the namespace, the schedule and the run."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from engine.test_bad_runs import change, step, take_the_numbers_of_events, trigger

from horarium.core.lifecycle.outcome import Accepted, Outcome, Refused, RunFailed
from horarium.launchers.launcher import LaunchRequest
from horarium.testing import TestService, service

_DAILY = "0 2 * * *"
_NODE = {"id": "one", "action": {"kind": "http", "url": "https://example.com/x"}}


def answer(request: LaunchRequest) -> Outcome:
    """`refused` cannot be launched, `failing` fails, and other schedules are accepted."""
    if request.schedule_id == "refused":
        return Refused("no such thing")
    return RunFailed("it broke") if request.schedule_id == "failing" else Accepted()


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def horarium(database_url: str, log: io.StringIO) -> Iterator[TestService]:
    settings = {"log_format": "json", "log_level": "info"}
    with service(
        at="2026-03-01T00:00:00Z", answer=answer, database=database_url, settings=settings, log_to=log
    ) as running:
        yield running


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def named(log: io.StringIO, event: str) -> list[tuple[str, str, str]]:
    """The namespace, schedule and run of each line with this event; a line without one of them raises."""
    return [(each["namespace"], each["schedule_id"], each["run_id"]) for each in lines(log) if each["event"] == event]


def expected(horarium: TestService, name: str) -> tuple[str, str, str]:
    return "default", name, horarium.runs(name)[0].run_id


def test_a_refused_and_a_failed_run_are_logged_with_namespace_schedule_and_run(
    horarium: TestService, log: io.StringIO
) -> None:
    trigger(horarium, "refused")
    horarium.create(
        schedule_id="failing", cron_expressions=[_DAILY], workflow_type="x", retry_policy={"max_retries": 1}
    )
    horarium.http().post("/api/schedules/failing/trigger").raise_for_status()
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    assert named(log, "run_launch_failed") == [expected(horarium, "refused")]
    assert named(log, "run_retry_scheduled") == [expected(horarium, "failing")]
    horarium.advance(3_600)
    assert set(named(log, "run_failed")) == {expected(horarium, "failing")}


def test_a_failed_workflow_and_its_step_are_logged_with_namespace_schedule_and_run(
    horarium: TestService, log: io.StringIO
) -> None:
    http = horarium.http()
    http.put("/api/workflows/flow", json={"nodes": [_NODE]}).raise_for_status()
    horarium.create(
        schedule_id="failing",
        cron_expressions=[_DAILY],
        action={"kind": "workflow", "workflow_id": "flow"},
        retry_policy={"max_retries": 0},
    )
    http.post("/api/schedules/failing/trigger").raise_for_status()
    engine = horarium.parts.engine
    for _ in range(4):
        step(horarium, engine._advance_step, 1)
        step(horarium, engine.dispatcher.step, 1)
    (run,) = horarium.runs("failing")
    assert run.state == "failed"
    found = http.get(f"/api/runs/{run.run_id}").json()
    ids = [run.run_id, *(each["run_id"] for each in found["steps"])]
    assert set(named(log, "run_failed")) == {("default", "failing", each) for each in ids}


@pytest.mark.both_databases
def test_rows_that_the_database_refuses_are_logged_with_namespace_schedule_and_run(
    horarium: TestService, log: io.StringIO
) -> None:
    engine = horarium.parts.engine
    trigger(horarium, "unwritten")
    take_the_numbers_of_events(horarium, "unwritten")
    step(horarium, engine.dispatcher.step, 1)
    assert named(log, "run_result_write_failed") == [expected(horarium, "unwritten")]
    trigger(horarium, "late")
    step(horarium, engine.dispatcher.step, 1)
    take_the_numbers_of_events(horarium, "late")
    change(horarium, "late", stop_requested_at=horarium.now, lease_owner=None, lease_until=None)
    step(horarium, engine.follower.step, 1)
    assert named(log, "run_update_failed") == [expected(horarium, "late")]
    horarium.clock.advance(100_000)
    step(horarium, engine.janitor.step, 1)
    assert expected(horarium, "late") in named(log, "cleanup_failed")


def test_a_workflow_that_cannot_be_moved_on_is_logged_with_namespace_schedule_and_run(
    horarium: TestService, log: io.StringIO
) -> None:
    http, engine = horarium.http(), horarium.parts.engine
    http.put("/api/workflows/flow", json={"nodes": [_NODE]}).raise_for_status()
    horarium.create(schedule_id="flow", cron_expressions=[_DAILY], action={"kind": "workflow", "workflow_id": "flow"})
    http.post("/api/schedules/flow/trigger").raise_for_status()
    step(horarium, engine.dispatcher.step, 1)
    take_the_numbers_of_events(horarium, "flow")
    change(horarium, "flow", progress="!!", effective="[oh")
    step(horarium, engine.advancer.step, 2)
    assert set(named(log, "workflow_advance_failed")) == {expected(horarium, "flow")}


def test_a_row_of_a_list_that_cannot_be_read_is_logged_with_namespace_schedule_and_run(
    horarium: TestService, log: io.StringIO
) -> None:
    trigger(horarium, "damaged")
    found = expected(horarium, "damaged")
    change(horarium, "damaged", origin="nowhere")
    http = horarium.http()
    assert http.get("/api/runs").json()["runs"][0]["unreadable"] is True
    assert named(log, "stored_row_unreadable") == [found]
