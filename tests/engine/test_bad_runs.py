"""Runs that the database refuses to change stop no run beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import Accepted, Finished, Outcome
from horarium.engine.claimer import Claimer
from horarium.platform.database.tables import run_events, runs, secrets
from horarium.platform.ids import parse_id
from horarium.testing import TestService, service

pytestmark = pytest.mark.both_databases

_DAILY = "0 2 * * *"
_MOST = 2**31 - 1


@pytest.fixture
def answer() -> Outcome:
    return Finished()


@pytest.fixture
def horarium(database_url: str, answer: Outcome) -> Iterator[TestService]:
    with service(at="2026-03-01T00:00:00Z", answer=answer, database=database_url) as running:
        yield running


def trigger(horarium: TestService, *names: str) -> None:
    """Start a run of each schedule, the first one of another target, and leave them `ready`."""
    for name in names:
        horarium.create(schedule_id=name, cron_expressions=[_DAILY], workflow_type=f"work-{name}")
        horarium.http().post(f"/api/schedules/{name}/trigger").raise_for_status()


def change(horarium: TestService, name: str, **values: Any) -> None:
    (run,) = horarium.runs(name)
    own = sa.update(runs).where(runs.c.run_id == parse_id(run.run_id, "run_id"))
    horarium.resources.database.write(lambda connection: connection.execute(own.values(values)))


def take_the_numbers_of_events(horarium: TestService, name: str) -> None:
    """Damage the count of a run's events, so that each number that it takes is in use."""
    (run,) = horarium.runs(name)
    run_id = parse_id(run.run_id, "run_id")

    def write(connection: sa.Connection) -> None:
        used = set(connection.execute(sa.select(run_events.c.sequence).where(run_events.c.run_id == run_id)).scalars())
        rows = [
            {"run_id": run_id, "sequence": n, "event_type": "RunFailed", "recorded_at": 0, "payload": "{}"}
            for n in range(1, 30)
            if n not in used
        ]
        connection.execute(sa.insert(run_events), rows)

    horarium.resources.database.write(write)


def states(horarium: TestService) -> dict[str, str]:
    return {str(run.schedule_id): str(run.state) for run in horarium.runs()}


def step(horarium: TestService, which: Callable[[], Any], times: int = 3) -> None:
    for _ in range(times):
        found = which()
        if asyncio.iscoroutine(found):
            horarium._loop.run(found)
        horarium.clock.advance(1)


@pytest.mark.parametrize("values", [{"launches": _MOST}, {"lease_epoch": _MOST}, {"attempt_ms": 2**62}])
def test_a_run_that_cannot_be_claimed_keeps_no_other_from_its_launch(
    horarium: TestService, values: dict[str, int]
) -> None:
    trigger(horarium, "a", "b")
    change(horarium, "a", **values)
    step(horarium, horarium.parts.engine.dispatcher.step)
    assert states(horarium)["b"] == RunState.SUCCEEDED


@pytest.mark.parametrize("values", [{"hosts": "[oh"}, {"hosts": "7"}, {"updated_at": 2**61}])
def test_a_secret_that_cannot_be_read_keeps_no_other_run_from_its_launch(
    horarium: TestService, values: dict[str, Any]
) -> None:
    horarium.http().put("/api/secrets/key", json={"value": "hidden"}).raise_for_status()
    action = {"kind": "http", "url": "https://example.com/", "headers": {"X-Key": {"$secret": "key"}}}
    horarium.create(schedule_id="bad", cron_expressions=[_DAILY], action=action)
    horarium.http().post("/api/schedules/bad/trigger").raise_for_status()
    trigger(horarium, "a", "b", "c")
    horarium.resources.database.write(lambda connection: connection.execute(sa.update(secrets).values(values)))
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    assert {name: states(horarium)[name] for name in ("a", "b", "c")} == dict.fromkeys("abc", RunState.SUCCEEDED)
    (bad,) = horarium.runs("bad")
    (column,) = values
    assert (bad.state, f"Secret 'key' cannot be read ({column}: " in str(bad.error)) == ("launch_failed", True)


def test_a_batch_that_cannot_be_read_is_halved_until_the_run_at_fault_is_alone(
    horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger(horarium, "a", "b", "c", "d", "e")
    (bad,) = horarium.runs("c")
    read = Claimer._read

    def refuse(self: Claimer, connection: sa.Connection, works: Any) -> Any:
        if any(work.run_id == parse_id(bad.run_id, "run_id") for work in works):
            raise ValueError("a row that nobody can read")
        return read(self, connection, works)

    monkeypatch.setattr(Claimer, "_read", refuse)
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    expected = {**dict.fromkeys("abde", RunState.SUCCEEDED), "c": RunState.READY}
    assert (states(horarium), [run.error for run in horarium.runs("a")]) == (expected, [None])


def test_an_answer_that_cannot_be_recorded_loses_no_other(horarium: TestService) -> None:
    trigger(horarium, "a", "b", "c")
    take_the_numbers_of_events(horarium, "a")
    dispatcher = horarium.parts.engine.dispatcher

    async def carry() -> None:
        from horarium.engine.dispatcher import LaunchAnswer

        claimed = await dispatcher.claim()
        outcomes = await asyncio.gather(*(dispatcher._deliver(each) for each in claimed.taken))
        answers = [LaunchAnswer(each, outcome) for each, outcome in zip(claimed.taken, outcomes, strict=True)]
        await dispatcher._settle_patiently(answers)

    horarium._loop.run(carry())
    assert (states(horarium)["b"], states(horarium)["c"]) == (RunState.SUCCEEDED, RunState.SUCCEEDED)


@pytest.mark.parametrize("answer", [Accepted()])
def test_a_run_that_cannot_be_stopped_keeps_no_other_from_its_end(horarium: TestService) -> None:
    trigger(horarium, "a", "b")
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    assert set(states(horarium).values()) == {RunState.RUNNING}
    for name in ("a", "b"):
        change(horarium, name, stop_requested_at=horarium.now, lease_owner=None, lease_until=None)
    take_the_numbers_of_events(horarium, "a")
    step(horarium, horarium.parts.engine.follower.step)
    assert states(horarium)["b"] == RunState.CANCELLED


_NODE = {"id": "one", "action": {"kind": "http", "url": "https://example.com/x"}}


def test_a_workflow_that_cannot_be_moved_on_keeps_no_other_from_moving(horarium: TestService) -> None:
    http = horarium.http()
    for name in ("a", "b"):
        http.put(f"/api/workflows/{name}", json={"nodes": [_NODE]}).raise_for_status()
        horarium.create(schedule_id=name, cron_expressions=[_DAILY], action={"kind": "workflow", "workflow_id": name})
        http.post(f"/api/schedules/{name}/trigger").raise_for_status()
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    take_the_numbers_of_events(horarium, "a")
    change(horarium, "a", progress="!!", effective="[oh")
    for _ in range(6):
        step(horarium, horarium.parts.engine.advancer.step, 1)
        step(horarium, horarium.parts.engine.dispatcher.step, 1)
    assert states(horarium)["b"] == RunState.SUCCEEDED


@pytest.mark.parametrize("answer", [Accepted()])
def test_a_run_that_cannot_be_timed_out_keeps_no_other_from_its_end(horarium: TestService) -> None:
    trigger(horarium, "a", "b")
    step(horarium, horarium.parts.engine.dispatcher.step, 1)
    take_the_numbers_of_events(horarium, "a")
    horarium.clock.advance(100_000)
    step(horarium, horarium.parts.engine.janitor.step)
    assert states(horarium)["b"] == RunState.TIMED_OUT
