"""All loops of a process together, on the real clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import account, insert_all, new_schedule
from world import FakeClock

from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.engine import engine as engines
from horarium.engine.engine import Engine, EngineOptions
from horarium.engine.janitor import JanitorResult
from horarium.engine.partitions import UpkeepResult
from horarium.engine.ticker import Tick, Ticker
from horarium.instant import SECOND, to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, processes
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.tables import runs
from horarium.platform.database.wakeups import PUSHED
from horarium.platform.database.wrapper import SharedClock
from horarium.serve.preparers import preparers_with


class Silent:
    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.answers: list[Any] = []

    def ticked(self, tick: Tick, now: int) -> None:
        self.ticks.append(tick)

    def settled(self, answers: Sequence[Any], now: int) -> None:
        self.answers += answers

    def tidied(self, tidied: JanitorResult, now: int) -> None:
        pass

    def upkept(self, upkept: UpkeepResult, now: int) -> None:
        pass


def engine_on(
    database: Database, clock: SystemClock | None = None, **options: Any
) -> tuple[Engine, RecordingLauncher, Silent]:
    clock, observer = clock or SystemClock(), Silent()
    launcher = RecordingLauncher(clock, kind="http")
    given = EngineOptions(
        **{"longest_sleep_seconds": 0.2, "janitor_seconds": 0.2, "stop_grace_seconds": 2.0, **options}
    )
    return (
        Engine(
            database,
            SharedClock(clock, database),
            Registry([launcher]),
            owner="me",
            observer=observer,
            preparers=preparers_with(),
            options=given,
        ),
        launcher,
        observer,
    )


def add_secondly(database: Database, count: int) -> None:
    now = SystemClock().now()
    fields: dict[str, Any] = {"intervals": [{"every": "PT1S"}], "overlap_policy": "allow_all"}
    insert_all(database, [new_schedule(f"s{n}", now=now, **fields) for n in range(count)], now=now)


async def live(engine: Engine, enough: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(engine.run(stop))
    async with asyncio.timeout(120):
        while not enough():
            await asyncio.sleep(0.05)
            assert not running.done(), running.exception()
        stop.set()
        await running


def test_what_came_due_while_nobody_ticked_is_decided_before_anybody_is_told_that_it_is_late(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "HEALTH_SECONDS", 3_600.0)
    engine, _, _ = engine_on(database)
    looks: list[None] = []
    monkeypatch.setattr(engine.health, "step", lambda: looks.append(None))
    asyncio.run(live(engine, lambda: {"ticker", "health"} <= engine.pulse.completed.keys()))
    assert looks == []


@pytest.mark.both_databases
def test_what_is_due_is_fired_launched_and_settled(database: Database) -> None:
    add_secondly(database, 3)
    engine, launcher, observer = engine_on(database)
    asyncio.run(live(engine, lambda: len(launcher.keys) >= 6))
    account(database)
    # A tick that comes late decides two occurrences of one schedule.
    assert sum(len(each.decisions) for tick in observer.ticks for each in tick.decided) >= 6
    assert len(observer.answers) == len(launcher.deliveries) == len(set(launcher.keys))
    # Two ticks that are launched together may mix; those of one schedule do not.
    for name in {request.schedule_id for request in launcher.deliveries}:
        nominals = [request.nominal for request in launcher.deliveries if request.schedule_id == name]
        assert nominals == sorted(nominals)


@pytest.mark.both_databases
def test_spread_runs_do_not_wait_for_the_janitor(database: Database) -> None:
    now = SystemClock().now() // SECOND * SECOND
    at = [to_rfc3339(now - seconds * SECOND) for seconds in range(9, 0, -1)]
    spread: dict[str, Any] = {"catchup_policy": "spread", "catchup_spread_seconds": 2, "misfire_grace_seconds": 0}
    fields = {"at": at, "overlap_policy": "allow_all", **spread}
    insert_all(database, [new_schedule("s", now=now - 10 * SECOND, **fields)], now=now)
    engine, launcher, _ = engine_on(database, janitor_seconds=3_600.0)
    asyncio.run(live(engine, lambda: len(launcher.keys) >= 9))
    account(database)
    assert [request.nominal for request in launcher.deliveries] == sorted(now - s * SECOND for s in range(1, 10))


def test_every_loop_has_a_pulse_and_the_process_a_heartbeat(database: Database) -> None:
    engine, _, _ = engine_on(database)
    names = {"clock", "heartbeat", "ticker", "janitor", "follower", "dispatcher"}
    seen: dict[str, Any] = {}

    def enough() -> bool:
        seen.update((lease.name, lease.info.get("serves")) for lease in database.read(processes.all_leases))
        return engine.pulse.completed.keys() >= names and seen.keys() >= {"process:me", "ticker"}

    asyncio.run(live(engine, enough))
    assert engine.pulse.failures == {}
    assert seen["process:me"] == {"kinds": {"http": ["*"]}, "names": {}}  # what it can launch
    assert "process:me" not in {lease.name for lease in database.read(processes.all_leases)}  # it left in good order


def test_news_of_a_run_reaches_whoever_follows_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, launcher, _ = engine_on(database)
    heard: list[str] = []
    monkeypatch.setattr(launcher, "hint", heard.append)

    def enough() -> bool:
        if {"ticker"} <= engine.pulse.completed.keys() and not heard:
            database.write(lambda connection: database.notify(connection, PUSHED, "run 7"))
        return bool(heard)

    asyncio.run(live(engine, enough))
    assert set(heard) == {"run 7"}


TICKS, DISPATCHES = {"ticker", "janitor"}, {"dispatcher", "follower"}


@pytest.mark.parametrize(
    ("options", "there", "missing"),
    [({"dispatches": False}, TICKS, DISPATCHES), ({"ticks": False}, DISPATCHES, TICKS)],
    ids=["only ticks", "only dispatches"],
)
def test_a_process_may_have_half_a_heart(database: Database, options: Any, there: set[str], missing: set[str]) -> None:
    engine, _, _ = engine_on(database, **options)
    asyncio.run(live(engine, lambda: engine.pulse.completed.keys() >= there))
    assert not engine.pulse.completed.keys() & missing


def test_a_loop_that_fails_recovers_and_the_others_go_on(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add_secondly(database, 1)
    engine, launcher, _ = engine_on(database)
    failures: list[int] = []
    step = Ticker.step

    def fail_twice(self: Ticker) -> Tick:
        if len(failures) < 2:
            failures.append(1)
            raise StoreUnavailable("restarting")
        return step(self)

    monkeypatch.setattr(Ticker, "step", fail_twice)
    asyncio.run(live(engine, lambda: len(launcher.keys) >= 2))
    assert engine.pulse.failures == {"ticker": 2}
    assert engine.pulse.errors == {}
    account(database)


@pytest.mark.both_databases
def test_two_engines_on_one_database_share_the_work(database: Database, open_another: Callable[[], Database]) -> None:
    add_secondly(database, 10)
    first, second = engine_on(database), engine_on(open_another())

    async def both() -> None:
        def enough() -> bool:
            return len(first[1].deliveries) + len(second[1].deliveries) >= 30

        await asyncio.gather(live(first[0], enough), live(second[0], enough))

    asyncio.run(both())
    account(database)
    keys = [*first[1].keys, *second[1].keys]
    assert len(keys) == len(set(keys))
    born = database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(runs)).scalar_one())
    assert len(keys) <= born


def test_processes_on_one_postgresql_agree_on_the_time(database: Database) -> None:
    clock = FakeClock(0)
    shared = SharedClock(clock, database)
    assert shared.now() == 0
    shared.measure()
    if database.dialect == "sqlite":
        assert shared.now() == 0  # the file has no clock of its own
    else:
        assert abs(shared.now() - SystemClock().now()) < 5 * SECOND
    assert shared.monotonic() == clock.monotonic()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_machine_whose_clock_is_set_does_not_take_us_along(database: Database) -> None:
    clock = SteppedClock()
    shared = SharedClock(clock, database)
    shared.measure()
    before = shared.now()
    assert not shared.must_be_measured()
    clock.step = 40 * SECOND
    assert abs(shared.now() - before) < 20 * SECOND
    assert shared.must_be_measured()
    shared.measure()
    assert abs(shared.now() - before) < 20 * SECOND
    assert not shared.must_be_measured()


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_clock_that_was_an_hour_ahead_leaves_no_process_and_no_ticker_alive_ahead(database: Database) -> None:
    """The machine's clock is what all share there: the running loops notice the step and record the present again."""
    clock, hour = SteppedClock(), 3_600 * SECOND
    engine, _, _ = engine_on(database, clock)

    def beats() -> list[int]:
        return [row.beat_at for row in database.read(processes.all_leases)]

    async def reached(met: Callable[[], bool]) -> None:
        while not met():
            await asyncio.sleep(0.05)

    async def main() -> None:
        stop, began = asyncio.Event(), clock.now()
        running = asyncio.create_task(engine.run(stop))
        async with asyncio.timeout(120):
            await reached(lambda: len(beats()) == 2)
            clock.step = hour
            await reached(lambda: min(beats()) > began + hour)
            clock.step = 0
            await reached(lambda: max(beats()) < began + hour)
            await reached(lambda: max(engine.pulse.completed.values()) < began + hour)
            stop.set()
            await running

    asyncio.run(main())
    beat = database.read(lambda c: processes.last_beat(c, processes.TICKER))
    assert beat is not None
    assert beat.info[processes.AHEAD_UNTIL] > clock.now()
    assert engine.pulse.failures == {}


class SteppedClock(SystemClock):
    step = 0

    def now(self) -> int:
        return super().now() + self.step


@pytest.mark.both_databases
def test_a_process_that_drains_says_so(database: Database) -> None:
    add_secondly(database, 1)
    engine, launcher, _ = engine_on(database)
    answer = threading.Event()

    async def wait(_request: LaunchRequest) -> Outcome:
        while not answer.is_set():
            await asyncio.sleep(0.02)
        return Finished()

    launcher._otherwise = wait

    def told() -> bool:
        rows = database.read(processes.all_leases)
        return any(row.name == "process:me" and "draining" in row.info for row in rows)

    async def main() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(engine.run(stop))
        async with asyncio.timeout(120):
            while not launcher.deliveries:
                await asyncio.sleep(0.02)
            stop.set()
            while not await asyncio.to_thread(told):
                await asyncio.sleep(0.02)
            answer.set()
            await running

    asyncio.run(main())
    account(database)
