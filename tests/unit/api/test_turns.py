"""Who works next."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from horarium.platform.http import limits as module
from horarium.platform.http.limits import TooManyRequests, TurnLimits, Turns, Who, turn_limits

LIMITS = TurnLimits(all=4, of_token=2, of_namespace=3)


@pytest.mark.parametrize(
    ("pool_size", "of_token", "limits"),
    [
        (10, None, TurnLimits(9, 4, 8)),
        (10, 1, TurnLimits(9, 1, 8)),
        (1, None, TurnLimits(2, 1, 1)),
        (500, None, TurnLimits(499, 249, 400)),
    ],
)
def test_the_connections_are_shared_out_and_others_always_find_some(
    pool_size: int, of_token: int | None, limits: TurnLimits
) -> None:
    assert turn_limits(pool_size, of_token) == limits


async def _started(turns: Turns, who: Who, worked: list[str], go: asyncio.Event, name: str) -> asyncio.Task[None]:
    async def work() -> None:
        async with turns.turn(who):
            worked.append(name)
            await go.wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    return task


def test_a_token_and_a_namespace_leave_room_for_others() -> None:
    async def main() -> list[str]:
        turns, worked, go = Turns(LIMITS), list[str](), asyncio.Event()
        asked = [("a", "x"), ("a", "x"), ("a", "x"), ("b", "x"), ("c", "x"), ("d", "y"), ("d", "y")]
        tasks = [await _started(turns, Who(*who), worked, go, "".join(who)) for who in asked]
        at_work = [*worked]
        go.set()
        await asyncio.gather(*tasks)
        assert sorted(worked) == sorted("".join(who) for who in asked)
        return at_work

    assert asyncio.run(main()) == ["ax", "ax", "bx", "dy"]


def test_those_who_wait_take_turns_whoever_has_more_to_ask() -> None:
    async def main() -> list[str]:
        turns, worked, go = Turns(TurnLimits(1, 1, 1)), list[str](), asyncio.Event()
        first = await _started(turns, Who("a", "x"), worked, go, "a")
        now = asyncio.Event()
        now.set()
        others = [await _started(turns, Who(name, name), worked, now, name) for name in "aaabbc"]
        go.set()
        await asyncio.gather(first, *others)
        return worked

    assert asyncio.run(main()) == ["a", "a", "b", "c", "a", "b", "a"]


def test_who_leaves_while_waiting_takes_no_turn_and_who_waits_too_long_hears_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WAITING_OF_TOKEN", 1)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)

    async def main() -> None:
        turns, worked, go = Turns(TurnLimits(1, 1, 1)), list[str](), asyncio.Event()
        who = Who("a", "x")
        first = await _started(turns, who, worked, go, "first")
        leaving = await _started(turns, who, worked, go, "leaving")
        async with AsyncExitStack() as stack:
            with pytest.raises(TooManyRequests):  # too many wait
                await stack.enter_async_context(turns.turn(who))
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        slow = await _started(turns, who, worked, go, "slow")
        with pytest.raises(TooManyRequests):  # for too long
            await slow
        go.set()
        await first
        async with turns.turn(who):
            worked.append("free again")
        assert worked == ["first", "free again"]

    asyncio.run(main())
