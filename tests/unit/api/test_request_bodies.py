"""The memory that bodies of unknown callers share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horarium.platform.http.limits import BodiesFull, BodyBudget, RequestBody


def test_a_budget_that_is_used_up_gives_nothing() -> None:
    budget = BodyBudget(10)
    budget.take(10)
    with pytest.raises(BodiesFull):
        budget.take(1)
    budget.give_back(10)
    budget.take(10)
    assert budget.used == 10


class Body:
    """A body whose pieces come when they are told to."""

    def __init__(self, budget: BodyBudget) -> None:
        self.pieces: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.body = RequestBody(self.pieces.get, budget, most=1_000, length=None)
        self.body.expect_credential()

    async def gets(self, size: int, *, more: bool = True) -> None:
        self.pieces.put_nowait({"type": "http.request", "body": b" " * size, "more_body": more})
        await self.body.receive()


def test_the_longest_unfinished_body_gives_way_to_a_shorter_one() -> None:
    async def work() -> None:
        budget = BodyBudget(100)
        short, long, newest = Body(budget), Body(budget), Body(budget)
        await short.gets(40)
        await long.gets(60)
        waiting = asyncio.create_task(long.body.receive())
        await asyncio.sleep(0)
        await newest.gets(10)
        with pytest.raises(BodiesFull):
            await waiting
        assert budget.used == 50
        await newest.gets(50)
        with pytest.raises(BodiesFull):  # it holds most itself
            await newest.gets(1)
        for each in (short, long, newest):
            each.body.release()
        assert budget.used == 0

    asyncio.run(work())


def test_a_body_that_is_whole_gives_way_to_none() -> None:
    """It is in memory until its answer, so its bytes are not free."""

    async def work() -> None:
        budget = BodyBudget(100)
        whole, newest = Body(budget), Body(budget)
        await whole.gets(100, more=False)
        with pytest.raises(BodiesFull):
            await newest.gets(1)
        whole.body.release()
        await newest.gets(1)

    asyncio.run(work())


def test_a_body_that_is_cancelled_is_not_taken_for_one_that_gave_way() -> None:
    async def work() -> None:
        body = Body(BodyBudget(100))
        await body.gets(10)
        waiting = asyncio.create_task(body.body.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(work())
