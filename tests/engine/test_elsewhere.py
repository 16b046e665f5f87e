"""A process leaves to others what it has no launcher for, as long as one of them has."""

from __future__ import annotations

import pytest
from engine.builders import ACTION, World
from world import FakeClock

from horarium.audience import parse_audience
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Served
from horarium.platform.database import Database, processes
from horarium.platform.database.processes import About, Process

pytestmark = pytest.mark.both_databases

PROMPT = {"kind": "prompt", "prompt": "hello"}


def one_beats(world: World, kind: str, *namespaces: str, draining: bool = False) -> None:
    serves = Served({kind: parse_audience(namespaces)}).document()
    process = Process(About("machine"), {}, serves, draining)
    world.write(lambda c: processes.beat_process(c, "machine:1:a", process, world.clock.now()))


def states(world: World) -> dict[str, str]:
    return {row.kind: row.state for row in world.runs()}


@pytest.fixture
def world(database: Database) -> World:
    clock = FakeClock()
    made = World(database, clock, launcher=RecordingLauncher(clock, kind="http"))
    made.add("other", action=PROMPT)
    made.add("ours", action=ACTION)
    made.clock.move(60)
    made.tick()
    return made


def test_a_run_waits_for_the_process_that_can_launch_it(world: World) -> None:
    one_beats(world, "prompt", "*")
    world.dispatch()
    assert states(world) == {"prompt": "ready", "http": "succeeded"}
    world.clock.move(13)  # it is silent: nobody can say that it comes back
    world.dispatch()
    assert states(world) == {"prompt": "launch_failed", "http": "succeeded"}


@pytest.mark.parametrize(
    ("kind", "namespaces", "draining"),
    [("http", ("*",), False), ("prompt", ("acme",), False), ("prompt", ("*",), True)],
    ids=["cannot either", "for others", "leaves"],
)
def test_nobody_waits_for_a_process_that_would_not_take_it(
    world: World, kind: str, namespaces: tuple[str, ...], draining: bool
) -> None:
    one_beats(world, kind, *namespaces, draining=draining)
    world.dispatch()
    assert states(world) == {"prompt": "launch_failed", "http": "succeeded"}
