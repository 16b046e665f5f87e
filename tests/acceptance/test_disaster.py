"""A database that restarts, a clock that jumps, a disk that is full: nothing lost, nothing twice, nothing by halves."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from acceptance.hurt_postgres import Server, hurt_postgres
from engine.builders import START, World, account, insert_all, new_schedule
from engine.test_engine import Silent
from world import FakeClock

from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.engine.capacity import Limits
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.dispatcher import LaunchAnswer
from horarium.engine.engine import Engine, EngineOptions
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.schema import migrate
from horarium.platform.database.tables import runs
from horarium.platform.database.wrapper import SharedClock
from horarium.serve.preparers import preparers_with

# ── a PostgreSQL of our own that may be hurt ─────────────────────────────────────────────────────────


@pytest.fixture
def server() -> Iterator[Server]:
    with hurt_postgres() as started:
        yield started


class Target(RecordingLauncher):
    """Takes a moment for each run, so that a disaster finds some in flight."""

    def __init__(self) -> None:
        super().__init__(SystemClock(), kind="http", otherwise=self._work)

    async def _work(self, _request: LaunchRequest) -> Outcome:
        await asyncio.sleep(0.05)
        return Finished()


@pytest.mark.parametrize(
    "hurt",
    [Server.restart_fast, Server.crash, Server.cut_connections],
    ids=["restart", "crash", "connections cut"],
)
def test_a_database_that_goes_away_under_load_loses_nothing(server: Server, hurt: Callable[[Server], None]) -> None:
    database = open_database(server.url)
    migrate(database)
    now = SystemClock().now()
    fields: dict[str, Any] = {
        "intervals": [{"every": "PT1S"}],
        "overlap_policy": "allow_all",
        "catchup_policy": "fire_all",
    }
    insert_all(database, [new_schedule(f"s{n}", now=now, **fields) for n in range(20)], now=now)
    target = Target()
    options = EngineOptions(
        longest_sleep_seconds=0.2,
        janitor_seconds=0.3,
        stop_grace_seconds=5.0,
        dispatcher=DispatcherOptions(Limits(process=20), lease_seconds=2),
    )
    engine = Engine(
        database,
        SharedClock(SystemClock(), database),
        Registry([target]),
        owner="me",
        observer=Silent(),
        preparers=preparers_with(),
        options=options,
    )
    asyncio.run(_live_through(engine, target, lambda: hurt(server)))
    account(database)
    # What was in flight may have been sent again, with the same key; the rest came once.
    keys = Counter(request.key for request in target.deliveries)
    rows = database.read(lambda c: list(c.execute(sa.select(runs.c.state, runs.c.launches))))
    assert {row.state for row in rows} <= {"succeeded", "ready"}
    assert sum(row.state == "succeeded" for row in rows) <= len(keys)
    assert max(keys.values()) <= 3
    database.close()


async def _live_through(engine: Engine, target: Target, disaster: Callable[[], None]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(engine.run(stop))

    async def until_more(count: int) -> None:
        wanted = len(target.keys) + count
        async with asyncio.timeout(120):
            while len(target.keys) < wanted:
                assert not running.done(), running.exception()
                await asyncio.sleep(0.05)

    await until_more(30)
    await asyncio.to_thread(disaster)
    await until_more(60)
    stop.set()
    async with asyncio.timeout(120):
        await running


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [600, -600], ids=["forward", "back"])
@pytest.mark.parametrize("policy", ["fire_once", "skip", "fire_all", "spread"])
def test_a_clock_that_jumps_ten_minutes_decides_nothing_twice(database: Database, step: int, policy: str) -> None:
    world = World(database)
    uid = world.add(catchup_policy=policy, overlap_policy="buffer_all")
    world.pass_time(300, step=20)
    world.clock.move(step)
    world.pass_time(300, step=20)
    world.clock.move(-step)
    world.pass_time(900, step=20)
    world.account()
    assert all(event.sequence for event in world.history(uid))
    nominal = [row.nominal for row in world.runs(uid)]
    assert len(nominal) == len(set(nominal))
    assert len({request.key for request in world.launcher.deliveries}) == len(world.launcher.deliveries)
    assert world.position(uid).decided_until >= START + 20 * 60 * 1_000_000


@pytest.mark.both_databases
@pytest.mark.parametrize("step", [600, -600], ids=["forward", "back"])
def test_a_clock_that_jumps_while_a_run_is_in_hand_ends_it_once(database: Database, step: int) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    (taken,) = asyncio.run(world.dispatcher.claim()).taken
    world.clock.move(step)
    world.tidy()
    asyncio.run(world.dispatcher.settle([LaunchAnswer(taken, Finished())]))
    assert world.states()[0] == "succeeded"
    world.tidy()
    world.account()


# ── the disk ─────────────────────────────────────────────────────────────────────────────────────────

sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"])


def small(database: Database, pages: int) -> None:
    """From now on the file may not grow beyond a few pages more."""

    def limit(connection: sa.Connection) -> None:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {used + pages}")

    database.write(limit)


def snapshot(database: Database) -> list[Any]:
    tables = ("positions", "runs", "history", "run_events", "counters")
    return database.read(
        lambda c: [[tuple(row) for row in c.exec_driver_sql(f"SELECT * FROM {table}")] for table in tables]
    )


@sqlite_only
def test_a_full_disk_is_told_plainly_and_leaves_nothing_half_written(database: Database) -> None:
    world = World(database)
    now = world.clock.now()
    insert_all(database, [new_schedule(f"s{n}", now=now) for n in range(300)], now=now)
    world.ticker.beat()
    small(database, 2)
    before = snapshot(database)
    world.clock.move(4)
    world.clock.set(START + 60_000_000)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        world.tick()
    assert snapshot(database) == before
    # Nobody is parked for it, and when there is room again everything goes on.
    database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 1000000"))
    world.tick()
    assert len(world.runs()) == 300
    world.account()


@sqlite_only
def test_a_full_disk_while_answers_are_written_loses_none(database: Database) -> None:
    clock = FakeClock()
    target = RecordingLauncher(clock, kind="http", otherwise=Finished({"much": "x" * 50_000}))
    world = World(database, clock, launcher=target)
    now = clock.now()
    insert_all(database, [new_schedule(f"s{n}", now=now) for n in range(20)], now=now)
    world.clock.move(60)
    world.tick()
    works = asyncio.run(world.dispatcher.claim()).taken
    small(database, 4)
    answers = [LaunchAnswer(each, Finished({"much": "x" * 50_000})) for each in works]
    before = snapshot(database)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        asyncio.run(world.dispatcher.settle(answers))
    assert snapshot(database) == before
    database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 1000000"))
    asyncio.run(world.dispatcher.settle(answers))
    assert world.states() == ["succeeded"] * 20
    world.account()


def _fill(path: Path) -> None:
    written = os.open(path, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(written, b"x" * 4_096):
            pass
    os.close(written)


@pytest.fixture
def tiny_disk() -> Iterator[Path]:
    """A real disk of two megabytes, where we may make one."""
    place = Path(tempfile.mkdtemp(prefix="horarium-tiny-"))
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        place.rmdir()
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)
    place.rmdir()


def test_a_real_full_disk_is_survived(tiny_disk: Path) -> None:
    database = open_database(str(tiny_disk / "horarium.db"))
    migrate(database)
    world = World(database)
    world.add(intervals=[{"every": "PT1S"}], overlap_policy="allow_all")
    filler = tiny_disk / "filler"
    _fill(filler)
    world.clock.move(100)
    with pytest.raises(StoreUnavailable):
        world.tick()
    filler.unlink()
    world.tick()
    world.dispatch()
    world.account()
    database.close()


def test_a_disk_that_became_read_only_is_told_plainly_and_may_come_back(tiny_disk: Path) -> None:
    database = open_database(str(tiny_disk / "horarium.db"))
    migrate(database)
    world = World(database)
    uid = world.add()
    world.ticker.beat()
    before = snapshot(database)
    database.close()
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    try:
        with pytest.raises(StoreUnavailable):
            _tick_once(tiny_disk)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(tiny_disk)], check=True)
    database = open_database(str(tiny_disk / "horarium.db"))
    assert snapshot(database) == before
    world = World(database)
    world.clock.move(60)
    world.tick()
    assert world.states(uid) == ["ready"]
    database.close()


def _tick_once(disk: Path) -> None:
    database = open_database(str(disk / "horarium.db"))
    try:
        world = World(database)
        world.clock.move(60)
        world.tick()
    finally:
        database.close()


@sqlite_only
def test_a_damaged_file_is_told_plainly(database: Database, database_url: str, tmp_path: Path) -> None:
    database.write(lambda c: c.exec_driver_sql("SELECT 1"))
    source = database_url.removeprefix("sqlite:///")
    broken = tmp_path / "broken.db"
    with sqlite3.connect(source) as original, sqlite3.connect(broken) as copied:
        original.backup(copied)
    original.close()
    copied.close()
    size = os.path.getsize(broken)
    with broken.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (size - 4_096))
    with pytest.raises(StoreUnavailable, match="damaged"):
        open_database(str(broken))
