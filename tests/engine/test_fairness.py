"""Nothing that waits costs another its turn: hanging targets, crowds, slow names, lost leases."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World, new_schedule
from engine.test_dispatcher import Gate, live, until
from world import FakeClock

from horarium.core.lifecycle.outcome import Finished, Outcome, RunCancelled, RunFailed
from horarium.engine.capacity import Limits
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.dispatcher import Dispatcher
from horarium.engine.engine import Engine, EngineOptions
from horarium.features.runs import definition_rows
from horarium.features.schedules.write_rows import insert_schedule
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import SECOND
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.pull import PullLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.database.tables import runs
from horarium.platform.database.wrapper import SharedClock
from horarium.serve.preparers import preparers_with

SLOW = {"kind": "http", "url": "http://slow.test/"}
FAST = {"kind": "http", "url": "http://fast.test/"}
EVERY_SECOND: dict[str, Any] = {
    "intervals": [{"every": "PT1S"}],
    "overlap_policy": "allow_all",
    "catchup_policy": "skip",
}


class Targets:
    """`slow.test` never answers until it is told to; every other host answers at once."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.arrived: list[str] = []

    async def __call__(self, request: LaunchRequest) -> Outcome:
        url = str(request.action.target["url"])
        self.arrived.append(url)
        return await self.gate(request) if "slow" in url else Finished()

    def count(self, word: str) -> int:
        return sum(word in url for url in self.arrived)


def world_of(database: Database, targets: Callable[..., Any], options: DispatcherOptions | None = None) -> World:
    clock = FakeClock()
    return World(database, clock, launcher=RecordingLauncher(clock, kind="http", otherwise=targets), dispatcher=options)


def add_namespace(database: Database, name: str) -> None:
    database.write(lambda c: tenant_rows.insert_namespace(c, name, "", now=0))


def add_many(world: World, count: int, **fields: Any) -> None:
    """Schedules that fire at the next minute, inserted together."""

    def work(connection: Any) -> None:
        for number in range(count):
            new = new_schedule(f"{fields.get('namespace', 'default')}-{number}", now=world.clock.now(), **fields)
            insert_schedule(connection, new, now=world.clock.now())

    world.write(work)


def test_hanging_targets_stop_nobody_else(database: Database) -> None:
    """120 schedules on a target that never answers; one on another target goes on, second by second."""
    targets = Targets()
    world = world_of(database, targets)
    add_namespace(database, "other")
    add_many(world, 120, action=SLOW)
    world.clock.move(60)
    world.tick()
    fast = world.add("fast", namespace="other", action=FAST, **EVERY_SECOND)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: targets.count("slow") == 16)  # half of the places of one target, since there are others
        for second in range(1, 6):
            world.clock.move(1)
            await asyncio.to_thread(world.tick)
            await until(lambda second=second: world.states(fast) == ["succeeded"] * second)
        targets.gate.open.set()
        await until(lambda: set(world.states()) == {"succeeded"})

    asyncio.run(live(world.dispatcher, during, grace=1.0))
    assert targets.count("slow") == 120
    world.account()


@pytest.mark.both_databases
def test_a_tenant_that_has_just_come_finds_places_beside_hanging_targets(database: Database) -> None:
    world = world_of(database, Targets(), DispatcherOptions(Limits(kinds={"http": 10})))
    add_many(world, 20, action=SLOW)
    world.add("first", action=FAST, **EVERY_SECOND)
    world.clock.move(59)
    world.tick()
    assert len(asyncio.run(world.dispatcher.claim()).taken) > 0  # while there is one namespace only
    add_namespace(database, "other")
    world.clock.move(1)
    world.tick()
    taken = asyncio.run(world.dispatcher.claim()).taken
    assert len(taken) == 5


def test_two_tenants_whose_targets_hang_leave_places_for_a_third(database: Database) -> None:
    targets = Targets()
    world = world_of(database, targets, DispatcherOptions(Limits(kinds={"http": 10})))
    for name in ("other", "quiet"):
        add_namespace(database, name)
    for name in ("default", "other"):
        add_many(world, 6, action=SLOW, namespace=name)
    world.clock.move(60)
    world.tick()
    fast = world.add("fast", namespace="quiet", action=FAST, **EVERY_SECOND)

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: targets.count("slow") >= 8)
        world.clock.move(1)
        await asyncio.to_thread(world.tick)
        await until(lambda: world.states(fast) == ["succeeded"])
        targets.gate.open.set()
        await until(lambda: set(world.states()) == {"succeeded"})

    asyncio.run(live(world.dispatcher, during, grace=1.0))


@pytest.mark.both_databases
def test_the_next_claim_of_a_crowd_sees_what_another_tenant_has_just_got(database: Database) -> None:
    world = world_of(database, Targets(), DispatcherOptions(batch=5))
    add_namespace(database, "other")
    add_many(world, 15, action=FAST)
    world.clock.move(60)
    world.tick()
    crowd = asyncio.run(world.dispatcher.claim())
    assert crowd.more
    world.add("late", namespace="other", action=SLOW, **EVERY_SECOND)
    world.clock.move(1)
    world.tick()
    taken = asyncio.run(world.dispatcher.claim()).taken
    assert Counter(each.work.namespace for each in taken) == {"default": 4, "other": 1}


def test_no_run_times_out_that_was_not_launched(database: Database) -> None:
    """100 runs, ten places, and less time for each than all together take: none has its time running meanwhile."""
    targets = Targets()
    world = world_of(database, targets, DispatcherOptions(Limits(kinds={"http": 10})))
    add_many(world, 100, action=SLOW | {"timeout_seconds": 5}, retry_policy={"max_retries": 0})
    world.clock.move(60)
    world.tick()

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: targets.count("slow") == 10)
        world.clock.move(4)
        waiting = [run for run in world.runs() if run.state == "ready"]
        assert {(run.deadline, run.launches, run.lease_epoch) for run in waiting} == {(None, 0, 0)}
        assert len(waiting) == 90
        targets.gate.open.set()
        await until(lambda: set(world.states()) == {"succeeded"})

    asyncio.run(live(world.dispatcher, during))
    assert world.tidy().timed_out == 0


@pytest.mark.both_databases
def test_the_highest_priority_is_delivered_first(database: Database) -> None:
    world = world_of(database, Targets())
    for priority in (0, 7, -100, 100, 3):
        world.add(f"p{priority}", priority=priority, action=FAST | {"input": [priority]})
    world.clock.move(60)
    world.tick()
    world.dispatch()
    assert [request.inputs for request in world.launcher.deliveries] == [[100], [7], [3], [0], [-100]]


@pytest.mark.both_databases
def test_a_crowd_does_not_delay_another_namespace(database: Database) -> None:
    """Of a batch of ten, the tenant with two runs has both, the one with two hundred the rest."""
    world = world_of(database, Targets(), DispatcherOptions(batch=10))
    add_namespace(database, "quiet")
    add_many(world, 200, action=FAST, priority=100)
    add_many(world, 2, action=FAST, namespace="quiet")
    world.clock.move(60)
    world.tick()
    world.dispatch()
    counts = Counter(request.namespace for request in world.launcher.deliveries)
    assert counts == {"default": 8, "quiet": 2}


@pytest.mark.both_databases
def test_more_targets_than_one_look_takes_in_are_all_delivered_to(database: Database, monkeypatch: Any) -> None:
    from horarium.engine import claimer

    monkeypatch.setattr(claimer, "_TARGETS", 3)
    monkeypatch.setattr(claimer, "_NAMESPACES", 2)
    world = world_of(database, Targets())
    for number in range(10):
        add_namespace(database, f"n{number}")
        for host in range(5):
            action = {"kind": "http", "url": f"http://h{host}.test/"}
            world.add(f"s{host}", namespace=f"n{number}", action=action)
    world.clock.move(60)
    world.tick()
    for _ in range(60):
        world.dispatch()
    assert set(world.states()) == {"succeeded"}
    assert len(world.launcher.deliveries) == 50


@pytest.mark.both_databases
def test_what_waits_for_a_worker_is_handed_over_however_full_the_process_is(database: Database) -> None:
    world = World(database)
    registry = Registry([PullLauncher(world.clock)])
    dispatcher = Dispatcher(
        database, world.clock, registry, "x", DispatcherOptions(Limits(process=1, target=1)), preparers=preparers_with()
    )
    add_many(world, 50, action={"kind": "pull", "workflow_type": "w", "queue": "q"})
    world.clock.move(60)
    world.tick()
    assert asyncio.run(dispatcher.step()) == 50
    assert set(world.states()) == {"queued"}
    assert {(run.lease_until, run.queue, run.started_at) for run in world.runs()} == {(None, "q", None)}
    assert {run.deadline for run in world.runs()} == {world.clock.now() + 3_600 * SECOND}
    world.account()


def test_a_process_full_of_hanging_calls_still_hands_over_what_waits_for_workers(database: Database) -> None:
    targets = Targets()
    world = world_of(database, targets, DispatcherOptions(Limits(process=4, namespace=4, target=4)))
    registry = Registry([world.launcher, PullLauncher(world.clock)])
    dispatcher = Dispatcher(
        database,
        world.clock,
        registry,
        "x",
        DispatcherOptions(Limits(process=4, namespace=4)),
        preparers=preparers_with(),
    )
    add_many(world, 10, action=SLOW)
    world.clock.move(60)
    world.tick()
    late = world.add("late", action={"kind": "pull", "workflow_type": "w", "queue": "q"})

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: targets.count("slow") == 4)
        world.clock.move(60)
        await asyncio.to_thread(world.tick)
        await until(lambda: world.states(late) == ["queued"])
        targets.gate.open.set()

    asyncio.run(live(dispatcher, during))


def test_threads_that_others_keep_busy_do_not_stop_the_engine(database: Database) -> None:
    """Slow look-ups and users' functions may fill asyncio's own threads: the engine waits in others."""
    launcher = RecordingLauncher(SystemClock(), kind="http")
    options = EngineOptions(longest_sleep_seconds=0.2, janitor_seconds=0.2, stop_grace_seconds=1.0)
    clock = SharedClock(SystemClock(), database)
    engine = Engine(
        database,
        clock,
        Registry([launcher]),
        owner="me",
        observer=Unheard(),
        preparers=preparers_with(),
        options=options,
    )
    new = new_schedule("s", now=SystemClock().now(), action=FAST, **EVERY_SECOND)
    database.write(lambda c: insert_schedule(c, new, now=SystemClock().now()))
    stuck = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, stuck.wait)
        stop = asyncio.Event()
        running = asyncio.create_task(engine.run(stop))
        try:
            async with asyncio.timeout(120):
                await until(lambda: len(launcher.keys) >= 2)
                await until(lambda: {"janitor", "follower", "clock", "heartbeat"} <= engine.pulse.completed.keys())
        finally:
            stop.set()
            await running
            stuck.set()
            await busy

    asyncio.run(main())


class Unheard:
    def ticked(self, tick: Any, now: int) -> None: ...
    def settled(self, recorded: Any, now: int) -> None: ...
    def tidied(self, tidied: Any, now: int) -> None: ...
    def upkept(self, upkept: Any, now: int) -> None: ...


# ── lost leases ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_one_process_never_works_on_two_copies_of_a_run(database: Database) -> None:
    """The lease ran out unnoticed while the copy still works: it is not begun a second time beside it."""
    gate = Gate(stubborn=True)
    world = world_of(database, gate, DispatcherOptions(lease_seconds=30))
    world.add(action=FAST)
    world.clock.move(60)
    world.tick()

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: len(gate.requests) == 1)
        world.clock.move(31)
        assert (await asyncio.to_thread(world.tidy)).lost_leases == 1
        world.clock.move(5)
        claimed = await world.dispatcher.claim()
        assert (claimed.taken, world.states()) == ([], ["ready"])
        gate.open.set()
        await until(lambda: world.states() == ["succeeded"])  # and its answer is welcome

    asyncio.run(live(world.dispatcher, during))
    assert len(gate.requests) == 1
    world.account()


@pytest.mark.both_databases
def test_the_end_of_a_lost_copy_leaves_the_newer_one_alone(database: Database) -> None:
    world = world_of(database, Targets())
    world.add(action=FAST)
    world.clock.move(60)
    world.tick()

    async def work() -> None:
        (old,) = (await world.dispatcher.claim()).taken
        world.clock.move(31)
        await asyncio.to_thread(world.tidy)
        world.clock.move(5)
        (new,) = (await world.dispatcher.claim()).taken
        for each in (old, new):
            world.dispatcher._in_flight[each.key] = each
            world.dispatcher._room.enter(each.seat)
        world.dispatcher._done_with(old)
        assert list(world.dispatcher._in_flight) == [new.key]

    asyncio.run(work())


def test_a_copy_that_is_stopped_because_its_lease_is_lost_cancels_no_run(database: Database) -> None:
    gate = Gate()
    world = world_of(database, gate, DispatcherOptions(lease_seconds=1))
    world.add(action=FAST)
    world.clock.move(60)
    world.tick()

    async def during(_stop: asyncio.Event) -> None:
        await until(lambda: len(gate.requests) == 1)
        later = world.clock.now() + 3_600 * SECOND
        # As the janitor of another process does: nobody has begun it again yet.
        lost = sa.update(runs).values(state="ready", lease_until=None, lease_owner=None, ready_at=later)
        world.write(lambda c: c.execute(lost))
        await until(lambda: world.dispatcher.in_flight == 0)

    asyncio.run(live(world.dispatcher, during))
    assert world.states() == ["ready"]


def test_a_cancelled_launch_of_ours_is_cancelled(database: Database) -> None:
    world = world_of(database, lambda _request: RunCancelled("asked"))
    world.add(action=FAST)
    world.clock.move(60)
    world.tick()
    world.dispatch()
    assert world.states() == ["cancelled"]


# ── what a run needs for its end ─────────────────────────────────────────────────────────────────────


def test_a_run_in_flight_keeps_its_retry_policy(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many other revisions were met meanwhile."""
    monkeypatch.setattr(definition_rows, "_MAX_REMEMBERED", 1)
    world = world_of(database, lambda _request: RunFailed("boom"))
    for number in range(5):
        world.add(f"s{number}", action=FAST, retry_policy={"max_retries": 3})
    world.clock.move(60)
    world.tick()
    assert world.dispatch() == 5
    assert [(run.state, run.attempt) for run in world.runs()] == [("ready", 1)] * 5
