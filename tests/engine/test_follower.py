"""The follower asks targets how their runs are doing, and tells them to stop what nobody wants."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World
from world import FakeClock

from horarium.core.lifecycle.outcome import Accepted, Finished, Outcome, RunFailed, StillRunning, Unknown
from horarium.engine import follower as module
from horarium.instant import SECOND
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher
from horarium.platform.database import Database
from horarium.platform.database.tables import runs, schedule_revisions


class Target(RecordingLauncher):
    """Accepts everything; a poll answers, raises or never ends, as written for each schedule."""

    def __init__(self, clock: FakeClock, answers: dict[str, Any] | None = None) -> None:
        super().__init__(clock, kind="http", otherwise=Accepted("ref"))
        self.answers = answers or {}
        self.asked: list[str] = []

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        assert reference == "ref"
        self.asked.append(str(request.schedule_id))
        return self._said(request)

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        await super().cancel(request, reference)
        self._said(request)

    def _said(self, request: LaunchRequest) -> Any:
        answer = self.answers.get(str(request.schedule_id), StillRunning())
        if isinstance(answer, Exception):
            raise answer
        return answer


def running(database: Database, count: int = 1, answers: dict[str, Any] | None = None) -> tuple[World, Target]:
    clock = FakeClock()
    target = Target(clock, answers)
    world = World(database, clock, launcher=target)
    for number in range(count):
        world.add(f"s{number}")
    world.clock.move(60)
    world.tick()
    world.dispatch()
    assert set(world.states()) == {"running"}
    return world, target


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Finished({"n": 1}), "succeeded"),
        (RunFailed("boom", "own"), "failed"),
        (RunFailed("boom"), "ready"),
        (Unknown("?"), "ready"),
        (StillRunning(), "running"),
    ],
    ids=["finished", "failed", "retried", "unknown", "still running"],
)
def test_an_answer_settles_the_run(database: Database, answer: Any, state: str) -> None:
    world, _ = running(database, answers={"s0": answer})
    assert world.follow() == 1
    assert world.states() == [state]
    world.account()


def test_a_target_is_asked_ever_more_rarely(database: Database) -> None:
    world, target = running(database)
    for _ in range(600):
        world.follow()
        world.clock.move(1)
    assert 30 < len(target.asked) < 120
    gap = world.runs()[0].ready_at - world.clock.now()
    assert gap <= 60 * SECOND


@pytest.mark.both_databases
def test_one_bad_target_keeps_nobody_from_an_answer(database: Database) -> None:
    world, _ = running(database, 3, {"s0": Finished(), "s1": RuntimeError("broken"), "s2": Finished()})
    assert world.follow() == 3
    assert sorted(world.states()) == ["running", "succeeded", "succeeded"]


@pytest.mark.both_databases
def test_a_target_that_never_answers_is_left_alone_after_a_while(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    world, target = running(database, 2)

    async def poll(request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        if request.schedule_id == "s0":
            await asyncio.sleep(60)
        return Finished()

    monkeypatch.setattr(target, "poll", poll)
    world.follow()
    assert sorted(world.states()) == ["running", "succeeded"]


@pytest.mark.both_databases
def test_an_answer_that_cannot_be_kept_ends_the_run(database: Database) -> None:
    world, _ = running(database, 2, {"s0": Finished(None, float("nan")), "s1": Finished()})
    world.follow()
    assert sorted(world.states()) == ["failed", "succeeded"]
    world.account()


def test_a_run_whose_definition_is_gone_waits_for_its_deadline(database: Database) -> None:
    world, target = running(database)
    world.write(lambda c: c.execute(sa.delete(schedule_revisions)))
    world.follower = module.Follower(database, world.clock, world.registry)
    assert world.follow() == 1
    assert (world.states(), target.asked) == (["running"], [])


def test_a_launcher_that_cannot_be_asked_is_not(database: Database) -> None:
    world, target = running(database, answers={"s0": Finished()})
    target.can_poll = False
    assert world.follow() == 0
    assert world.states() == ["running"]


@pytest.mark.parametrize("answer", [None, RuntimeError("deaf")], ids=["listens", "raises"])
def test_what_nobody_wants_is_told_to_stop_and_called_cancelled(database: Database, answer: Any) -> None:
    world, target = running(database, 2, {"s0": answer})
    world.write(lambda c: c.execute(sa.update(runs).values(stop_requested_at=1, ready_at=world.clock.now() + SECOND)))
    assert world.follow() == 2
    assert world.states() == ["cancelled", "cancelled"]
    assert {reference for _, reference in target.cancels} == {"ref"}
    assert len(target.cancels) == 2
    world.account()


def test_the_unwanted_without_a_definition_end_too(database: Database) -> None:
    world, target = running(database)
    world.write(lambda c: c.execute(sa.update(runs).values(stop_requested_at=1)))
    world.write(lambda c: c.execute(sa.update(schedule_revisions).values(document="{")))
    world.follower = module.Follower(database, world.clock, world.registry)
    world.follow()
    assert (world.states(), target.cancels) == (["cancelled"], [])
