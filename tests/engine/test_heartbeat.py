"""A process shows that it is there, whatever its other parts wait for, and notices a clock that is set back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from engine.builders import START
from world import FakeClock

from horarium.core.decision.presence import GONE_AFTER_SECONDS, silent_seconds
from horarium.engine.chores import TICKER, ProcessHeartbeat
from horarium.engine.loop import EngineThreads, Pulse
from horarium.engine.ticker import Ticker
from horarium.instant import HOUR, SECOND
from horarium.platform.database import Database, processes
from horarium.platform.database.processes import About, process_rows
from horarium.platform.database.wrapper import SharedClock


def heartbeat_on(database: Database, clock: FakeClock) -> tuple[ProcessHeartbeat, Ticker, Pulse]:
    pulse, threads = Pulse(), EngineThreads(1)
    threads.stay_here()
    ticker = Ticker(database, clock, "me")
    about, shared = About("here"), SharedClock(clock, database)
    beating = ProcessHeartbeat(database, shared, threads, pulse, owner="me", about=about, serves=lambda: None)
    beating.takes_part(TICKER)
    beating.beats_for(ticker)
    return beating, ticker, pulse


def ticker_beat(database: Database) -> processes.LastBeat:
    found = database.read(lambda c: processes.last_beat(c, "ticker"))
    assert found is not None
    return found


@pytest.mark.both_databases
def test_a_ticker_whose_step_hangs_is_recorded_as_there(database: Database) -> None:
    clock = FakeClock(START)
    beating, _, pulse = heartbeat_on(database, clock)
    for _ in range(20):
        clock.move(5)
        asyncio.run(beating.step())
    assert (ticker_beat(database).since, ticker_beat(database).beat_at) == (START + 5 * SECOND, clock.now())
    assert pulse.completed == {}  # and its pulse stands still: readiness does not go by beats


@pytest.mark.both_databases
def test_a_beat_that_another_thread_has_begun_is_not_waited_for(database: Database) -> None:
    beating, ticker, _ = heartbeat_on(database, FakeClock(START))
    with ticker._beating:
        asyncio.run(beating.step())
    assert [row.owner for row in database.read(process_rows)] == ["me"]
    assert database.read(lambda c: processes.last_beat(c, "ticker")) is None


def test_a_clock_that_was_ahead_between_two_looks_leaves_nothing_ahead(database: Database) -> None:
    clock = FakeClock(START)
    beating, _, pulse = heartbeat_on(database, clock)
    beating.look()
    clock.move(3_600)
    pulse.completed["ticker"] = clock.now()
    clock.move(-3_600)
    beating.look()
    assert (beating._hurry.is_set(), pulse.completed) == (True, {"ticker": START})


def test_a_clock_that_is_set_back_makes_it_beat_at_once_and_leaves_nothing_ahead(database: Database) -> None:
    clock = FakeClock(START)
    beating, _, pulse = heartbeat_on(database, clock)
    clock.move(3_600)
    asyncio.run(beating.step())
    pulse.completed["ticker"] = clock.now()
    beating.look()
    assert not beating._hurry.is_set()
    clock.move(-3_600)
    (row,) = database.read(process_rows)
    assert silent_seconds(row.beat_at, clock.now()) > GONE_AFTER_SECONDS
    beating.look()
    assert (beating._hurry.is_set(), pulse.completed) == (True, {"ticker": START})
    asyncio.run(beating.step())
    (row,) = database.read(process_rows)
    assert (row.beat_at, row.since, row.process.completed) == (START, START, {"ticker": START})
    assert ticker_beat(database).info == {"ahead_until": START + HOUR + 5 * SECOND}


@pytest.mark.parametrize(
    ("ticked_ago", "pause"), [(None, 0.1), (0, 5), (5, 5), (6, 1)], ids=["never", "now", "a while ago", "hangs"]
)
def test_the_first_tick_and_the_first_after_a_fault_are_recorded_soon(
    database: Database, ticked_ago: int | None, pause: float
) -> None:
    clock = FakeClock(START)
    beating, _, pulse = heartbeat_on(database, clock)
    if ticked_ago is not None:
        pulse.completed["ticker"] = clock.now() - ticked_ago * SECOND
    assert asyncio.run(beating.step()) == pause


@pytest.mark.both_databases
def test_a_draining_process_no_longer_says_that_its_ticker_is_there(database: Database) -> None:
    clock = FakeClock(START)
    beating, _, _ = heartbeat_on(database, clock)

    async def main() -> None:
        over, stop = asyncio.Event(), asyncio.Event()
        stop.set()
        running = asyncio.create_task(beating.run(over, stop))
        await until(lambda: beating._draining)
        clock.move(3_600)
        await beating.step()
        over.set()
        await running

    asyncio.run(main())
    found = database.read(lambda c: processes.last_beat(c, "ticker"))
    assert found is None or found.beat_at == START


async def until(met: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not met():
            await asyncio.sleep(0.01)
