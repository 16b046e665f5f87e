"""A launch that waits for its agent is told that there is news, and asks sooner."""

from __future__ import annotations

import asyncio

from launchers.far_ends import FOR_EVER

from horarium.launchers.a2a.messages import Hints


def test_a_hint_ends_the_pause() -> None:
    async def run() -> None:
        hints = Hints()
        assert not hints.hint("run-1")
        with hints.listening("run-1"):
            pause = asyncio.ensure_future(hints.pause("run-1", 10 * FOR_EVER))
            await asyncio.sleep(0)
            assert hints.hint("run-1")
            await asyncio.wait_for(pause, FOR_EVER)
            cancelled = asyncio.Event()
            cancelled.set()
            await asyncio.wait_for(hints.pause("run-1", 10 * FOR_EVER, cancelled), FOR_EVER)
            await hints.pause("run-1", 0.01)

    asyncio.run(run())


def test_news_that_come_between_two_pauses_are_heard_in_the_next() -> None:
    async def run() -> None:
        hints = Hints()
        with hints.listening("run-1"):
            hints.hint("run-1")
            await asyncio.wait_for(hints.pause("run-1", 10 * FOR_EVER), FOR_EVER)

    asyncio.run(run())
