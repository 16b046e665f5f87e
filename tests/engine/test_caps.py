"""What no run may use, whatever its definition says: caps of the engine, for plain runs and for workflows."""

from __future__ import annotations

from typing import Any

import pytest
from engine.builders import World
from engine.workflows import Flow, node, store
from world import FakeClock

from horarium.core.lifecycle.outcome import Accepted, Finished
from horarium.core.policy.limits import RunLimits
from horarium.engine.advancer import Advancer
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.janitor import Janitor
from horarium.launchers.recording import RecordingLauncher
from horarium.platform.database import Database
from horarium.platform.settings import Settings
from horarium.serve.service import run_caps


def capped(database: Database, caps: RunLimits, answer: Any, **limits: Any) -> Any:
    """A plain run that is handed out under caps, half a minute later."""
    clock = FakeClock()
    launcher = RecordingLauncher(clock, kind="http", otherwise=answer)
    world = World(database, clock, launcher=launcher, dispatcher=DispatcherOptions(caps=caps))
    world.janitor = Janitor(database, clock, caps=caps)
    world.add(**limits)
    world.clock.move(60)
    world.tick()
    world.dispatch()
    world.clock.move(30)
    world.tidy()
    return world.runs()[0]


@pytest.mark.parametrize(
    ("own", "seconds"), [({}, 20), ({"limits": {"runtime_seconds": 100}}, 20), ({"limits": {"runtime_seconds": 5}}, 5)]
)
def test_a_run_may_take_no_longer_than_everybody_may(database: Database, own: dict[str, Any], seconds: int) -> None:
    run = capped(database, RunLimits(runtime_seconds=20), Accepted("ref"), **own)
    assert (run.state, run.cause, run.ends_by - run.started_at) == ("failed", "runtime_cap", seconds * 1_000_000)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_run_may_use_no_more_than_everybody_may(database: Database) -> None:
    run = capped(database, RunLimits(tokens=10), Finished(tokens=11))
    assert (run.state, run.cause) == ("failed", "tokens_cap")


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_steps_of_a_workflow_use_it_together(database: Database) -> None:
    caps = RunLimits(cost=3, runtime_seconds=7_200)
    store(database, "w", node("a"), node("b", "a"), node("c", "b"))
    flow = Flow(database, dict.fromkeys("abc", Finished(cost=2)), dispatcher=DispatcherOptions(caps=caps))
    flow.advancer = Advancer(database, flow.clock, caps=caps)
    root = flow.begin()
    run = flow.run(root)
    assert (run.state, run.cause, run.cost) == ("failed", "cost_cap", 4_000_000)
    assert flow.nodes(root) == {"a": "succeeded", "b": "succeeded", "c": "skipped"}
    assert run.deadline - run.started_at == 7_200_000_000


def test_caps_are_settings_and_there_are_none_by_default() -> None:
    assert run_caps(Settings()) is None
    caps = run_caps(Settings(run_cost_cap=0.1, run_tokens_cap=0))
    assert caps is not None
    assert (str(caps.cost), caps.tokens, caps.runtime_seconds) == ("0.100000", 0, None)
