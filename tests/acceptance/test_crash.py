"""Killed at any point of the walk, nothing is lost and nothing is decided twice."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from acceptance import worker_main
from acceptance.processes import finish, start
from acceptance.worker_main import FileLauncher
from engine.builders import ACTION, START, World, insert_all, new_schedule
from world import FakeClock

from horarium.engine.dispatcher import Dispatcher
from horarium.instant import SECOND, Instant
from horarium.launchers.registry import Registry
from horarium.platform.database import Database
from horarium.platform.ids import id_text
from horarium.serve.preparers import preparers_with

# Of a run whose outcome nobody knows: wait for its lease to be lost, and for the back-off after it.
LEASE_SECONDS = 31
# Every point of the walk that has a name of its own; the test below kills at the others, too.
STEPS = [
    "tick: after SELECT positions",
    "tick: before commit",
    "tick: after commit",
    "claim: before commit",
    "claim: after commit",
    "launch: before",
    "launch: after",
    "settle: before commit",
    "settle: after commit",
]
# A walk with two occurrences of each schedule has about so many points.
POINTS = 104
CHUNKS = 8


def run_worker(url: str, now: Instant, home: Path, kill_at: str | int | None) -> int:
    (code,) = finish([start(worker_main.work, url, now, str(home), kill_at)], 20)
    assert code is not None, "the worker hangs"
    return code


def points(home: Path) -> list[str]:
    return (home / "points").read_text().splitlines()


def populate(database: Database) -> None:
    """At least once, at most once, and a buffer whose second run the end of the first releases."""
    once = {"action": ACTION | {"delivery": "at_most_once"}}
    kinds: list[dict[str, Any]] = [
        {"overlap_policy": "allow_all"},
        {"overlap_policy": "allow_all", **once},
        {"overlap_policy": "buffer_all", "concurrency_key": "k", "concurrency_limit": 3},
    ]
    insert_all(database, [new_schedule(f"s{n}", now=START, **kind) for n, kind in enumerate(kinds)], now=START)


def recover(database: Database, now: Instant, home: Path) -> World:
    """Another process takes over, after the leases of the dead one have run out."""
    clock = FakeClock(now)
    world = World(database, clock)
    launcher = FileLauncher(home / "deliveries")
    world.dispatcher = Dispatcher(database, clock, Registry([launcher]), "second", preparers=preparers_with())
    for _ in range(100):
        world.tick()
        world.dispatch()
        world.clock.move(LEASE_SECONDS)
        world.tidy()
        if all(row.finished_at is not None for row in world.runs()) and world.ticker.step().claimed == 0:
            return world
        time.sleep(0.01)  # PostgreSQL may not have noticed yet that the dead one is gone
    raise AssertionError(f"not everything came to its end: {world.states()}")


def check(world: World, home: Path, crashes: int) -> None:
    """No occurrence missing or decided twice, no run twice; one more delivery for a crash, at most."""
    world.account()
    file = home / "deliveries"
    delivered = Counter(line.split()[0] for line in (file.read_text().splitlines() if file.exists() else []))
    by_id = {id_text(row.run_id): row for row in world.runs()}
    assert delivered.keys() <= by_id.keys()
    for run_id, row in by_id.items():
        if row.delivery == "at_most_once":
            assert delivered[run_id] <= 1
            assert row.state in ("succeeded", "unknown")
        else:
            assert row.state == "succeeded"
            assert 1 <= delivered[run_id] <= 1 + crashes
    keys = Counter(line.split()[1] for line in (file.read_text().splitlines() if file.exists() else []))
    assert len(keys) == len(delivered)  # a redelivery carries the same key


NOW = START + 121 * SECOND


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_that_is_killed_at_a_step_loses_nothing(
    database: Database, database_url: str, tmp_path: Path, step: str
) -> None:
    populate(database)
    assert run_worker(database_url, NOW, tmp_path, step) == -signal.SIGKILL
    assert points(tmp_path)[-1] == step
    world = recover(database, NOW, tmp_path)
    assert len(world.runs()) >= 6
    check(world, tmp_path, crashes=1)


def test_without_a_kill_the_walk_passes_every_step(database: Database, database_url: str, tmp_path: Path) -> None:
    populate(database)
    assert run_worker(database_url, NOW, tmp_path, None) == 0
    assert set(STEPS) <= set(points(tmp_path))
    world = World(database, FakeClock(NOW))
    assert set(world.states()) == {"succeeded"}
    assert len(world.runs()) == 6
    check(world, tmp_path, crashes=0)
    assert len((tmp_path / "deliveries").read_text().splitlines()) == 6


@pytest.mark.parametrize("chunk", [0, 5, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3, 4, 6, 7))])
def test_a_worker_that_is_killed_after_any_statement_loses_nothing(
    database: Database, database_url: str, tmp_path: Path, chunk: int
) -> None:
    """One database, many deaths: each new worker finds what the ones before it left, two minutes later."""
    populate(database)
    killed, now = 0, NOW
    for kill_at in range(1 + chunk, POINTS + 1, CHUNKS):
        killed += run_worker(database_url, now, tmp_path, kill_at) == -signal.SIGKILL
        now += 120 * SECOND
    assert killed >= 3  # a walk that has less to do ends before its point
    check(recover(database, now, tmp_path), tmp_path, crashes=killed)
