"""Several hands decide a herd: each schedule once, and what one hand cannot do spoils nothing for the other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from engine.builders import World, insert_all, new_schedule

from horarium.engine.ticker import TICK_THREADS, ParallelTicker, Tick, TickerOptions, TickShare
from horarium.platform.database import Database
from horarium.platform.database.errors import StoreUnavailable

pytestmark = pytest.mark.both_databases


class Scripted:
    """A ticker that answers from a list; at its end nothing is due."""

    def __init__(self, *answers: Tick | Exception) -> None:
        self.answers = list(answers)
        self.threads: set[int] = set()
        self._lock = threading.Lock()

    def step(self) -> Tick:
        with self._lock:
            self.threads.add(threading.get_ident())
            answer = self.answers.pop(0) if self.answers else Tick()
        if isinstance(answer, Exception):
            raise answer
        return answer


FULL = Tick(claimed=500, more=True)
LAST = Tick(claimed=3)


def stepped(ticker: Any, count: int, steps: int = 1) -> list[list[TickShare]]:
    hands = ParallelTicker(ticker, count)

    async def work() -> list[list[TickShare]]:
        return [await hands.step() for _ in range(steps)]

    return asyncio.run(work())


def claimed(shares: list[TickShare]) -> int:
    return sum(tick.claimed for share in shares for tick in share.ticks)


def test_an_ordinary_tick_is_one_batch_of_one_hand() -> None:
    [shares] = stepped(Scripted(LAST, FULL), 2)
    assert shares == [TickShare((LAST,))]


def test_after_a_full_batch_all_hands_take_several() -> None:
    ticker = Scripted(*[FULL] * 9, LAST)
    first, second, third = stepped(ticker, 2, steps=3)
    assert first == [TickShare((FULL,))]
    assert (len(second), claimed(second)) == (2, 8 * 500 + 3)
    assert third == [TickShare((Tick(),))]


def test_one_hand_stays_one() -> None:
    first, second = stepped(Scripted(FULL, FULL, FULL), 1, steps=2)
    assert (first, second) == ([TickShare((FULL,))], [TickShare((FULL,))])


def test_an_error_is_told_beside_what_was_done_and_the_next_step_is_taken_alone() -> None:
    down = StoreUnavailable("restarting")
    ticker = Scripted(FULL, FULL, down, *[FULL] * 3, LAST, LAST)
    first, second, third = stepped(ticker, 2, steps=3)
    assert first == [TickShare((FULL,))]
    assert [share.error for share in second].count(down) == 1
    assert claimed(second) == 4 * 500 + 3
    assert len(third) == 1


def test_a_herd_is_decided_once_by_as_many_hands_as_the_database_has(database: Database) -> None:
    world = World(database, ticker=TickerOptions(batch=10))
    now = world.clock.now()
    insert_all(database, [new_schedule(f"s{n}", now=now) for n in range(200)], now=now)
    world.clock.move(60)
    hands = ParallelTicker(world.ticker, TICK_THREADS[database.dialect])

    async def work() -> int:
        total = 0
        while done := claimed(shares := await hands.step()):
            assert [share.error for share in shares] == [None] * len(shares)
            total += done
        return total

    assert asyncio.run(work()) == 200
    assert world.states() == ["ready"] * 200
    world.account()


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_sqlite_has_one_writer_and_one_hand(database: Database) -> None:
    assert TICK_THREADS[database.dialect] == 1
