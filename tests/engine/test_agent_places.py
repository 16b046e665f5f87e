"""An agent is never sent more than it takes, by however many processes; what finds no place waits, and ends."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from engine.agents import Agents, add_agent, add_prompts, world_of
from engine.builders import World
from world import FakeClock

from horarium.core.lifecycle.outcome import Asked, Finished
from horarium.engine.capacity import Limits
from horarium.engine.claimer import ClaimResult, DispatcherOptions
from horarium.engine.dispatcher import LaunchAnswer
from horarium.instant import SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import runs


def claim(world: World) -> ClaimResult:
    return asyncio.run(world.dispatcher.claim())


def out(world: World) -> Counter[str]:
    """By target."""
    return Counter(run.target for run in world.runs() if run.state in ("launching", "running"))


def settle(world: World, claimed: ClaimResult) -> None:
    asyncio.run(world.dispatcher.settle([LaunchAnswer(each, Finished({"text": "done"})) for each in claimed.taken]))


def other_process(world: World, database: Database) -> World:
    return World(database, world.clock, launcher=Agents(FakeClock(world.clock.now())))


@pytest.mark.both_databases
def test_an_agent_has_as_many_as_it_takes_and_each_freed_place_is_taken(database: Database) -> None:
    world = world_of(database)
    add_agent(world, "one", capacity=1)
    add_agent(world, "two", capacity=2)
    add_prompts(world, 3, "one")
    add_prompts(world, 4, "two")
    first = claim(world)
    assert out(world) == {"prompt:agent/one": 1, "prompt:agent/two": 2}
    second = claim(world)
    assert (list(second.taken), second.waiting) == ([], True)
    settle(world, first)
    claim(world)
    assert out(world) == {"prompt:agent/one": 1, "prompt:agent/two": 2}


@pytest.mark.both_databases
def test_two_processes_together_keep_to_what_an_agent_takes(
    database: Database, open_another: Callable[[], Database]
) -> None:
    """Both at once, again and again: whoever finds the agent's row held passes it over."""
    world = world_of(database)
    for name in ("a", "b", "c"):
        add_agent(world, name, capacity=2)
        add_prompts(world, 8, name)
    worlds = [world, other_process(world, open_another())]
    for _ in range(4):
        gate = threading.Barrier(2)
        found: list[tuple[World, ClaimResult]] = []

        def take(each: World, gate: threading.Barrier = gate, found: list[tuple[World, ClaimResult]] = found) -> None:
            gate.wait(timeout=60)
            found.append((each, claim(each)))

        threads = [threading.Thread(target=take, args=(each,)) for each in worlds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(found) == 2
        assert all(count <= 2 for count in out(world).values())
        found += [(each, claim(each)) for each in worlds]  # what was passed over
        assert out(world) == {"prompt:agent/a": 2, "prompt:agent/b": 2, "prompt:agent/c": 2}
        for each, claimed in found:
            settle(each, claimed)
    assert world.states() == ["succeeded"] * 24


@pytest.mark.both_databases
def test_what_an_agent_may_have_counts_while_nobody_holds_it_and_needs_no_place(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, 2)
    (held,) = claim(world).taken
    asyncio.run(world.dispatcher._desk.name(held, "t1"))
    world.clock.move(31)
    world.tidy()
    assert not claim(world).taken  # it is to be looked for in a moment, and the agent may be at work
    world.clock.move(5)
    (followed,) = claim(world).taken
    assert (followed.work.run_id, followed.work.reference) == (held.work.run_id, "t1")


def test_a_question_takes_up_no_place(database: Database) -> None:
    world = world_of(database, Asked("agent_input", "Which?", "t1"))
    add_agent(world)
    add_prompts(world, 2)
    assert [world.dispatch(), world.dispatch()] == [1, 1]
    assert sorted(world.states()) == ["awaiting_approval", "succeeded"]


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_what_finds_no_place_for_two_minutes_is_skipped_and_told_as_any_end(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, 3)
    claim(world)
    claim(world)
    start = world.clock.now()
    waiting = [run for run in world.runs() if run.state == "ready"]
    assert [(run.busy_since, run.launches, run.lease_epoch) for run in waiting] == [(start, 0, 0)] * 2
    world.clock.move(119)
    claim(world)
    assert {run.busy_since for run in world.runs() if run.state == "ready"} == {start}  # it is marked once
    assert world.tidy().without_place == 0
    world.clock.move(1)
    tidied = world.tidy()
    assert (tidied.without_place, tidied.ended) == (2, ("skipped", "skipped"))
    ended = [run for run in world.runs() if run.state == "skipped"]
    assert {(run.cause, run.error) for run in ended} == {("target_busy", "target busy for 120 seconds")}
    assert world.events(ended[0].run_id)[-1] == "run.skipped"
    world.account()


def test_what_waits_only_because_this_process_is_full_is_not_marked(database: Database) -> None:
    world = world_of(database)
    options = DispatcherOptions(limits=Limits(kinds={"prompt": 1}))
    world = World(database, world.clock, launcher=world.launcher, dispatcher=options)
    add_agent(world, capacity=5)
    add_prompts(world, 3)
    (held,) = claim(world).taken
    world.dispatcher._room.enter(held.seat)
    assert not claim(world).taken
    assert [run.busy_since for run in world.runs()] == [None] * 3


def test_a_run_that_an_agent_may_have_is_not_skipped_for_want_of_a_place(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    busy = {"heard": True, "busy_since": world.clock.now(), "reference": "t1"}
    world.write(lambda c: c.execute(sa.update(runs).values(busy)))
    world.clock.move(600)
    assert world.tidy().total == 0
    assert world.states() == ["ready"]


def test_an_answer_that_somebody_gave_waits_for_its_agent_for_as_long_as_it_takes(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, 2)
    (held,) = claim(world).taken
    answered = {"gates_passed": 1, "reference": "t1"}
    world.write(lambda c: c.execute(sa.update(runs).where(runs.c.run_id != held.work.run_id).values(answered)))
    claim(world)
    assert [run.busy_since for run in world.runs() if run.state == "ready"] == [None]


def test_the_last_try_of_an_agent_that_said_it_is_busy_comes_before_its_end(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    now = world.clock.now()
    tried = {"busy_since": now, "ready_at": now + 120 * SECOND}
    world.write(lambda c: c.execute(sa.update(runs).values(tried)))
    world.clock.move(121)
    assert world.tidy().total == 0
    world.dispatch()
    assert world.states() == ["succeeded"]
