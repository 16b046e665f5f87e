"""How a launch that waits hears that its agent has news: a hint ends the pause, and the next poll finds out.

A hint proves nothing and carries nothing. One that comes for a run which nobody here waits for is forgotten: whoever
follows that run polls anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

# However often an agent calls, it is asked at most so often: hints must not cost more than they save.
LEAST_PAUSE_SECONDS = 0.05


class Hints:
    """Belongs to one event loop. `hint` may be called from any thread."""

    def __init__(self) -> None:
        self._news: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Event]] = {}

    @contextmanager
    def listening(self, run_id: str) -> Iterator[None]:
        """Inside it a hint that comes between two pauses ends the next one."""
        self._news[run_id] = (asyncio.get_running_loop(), asyncio.Event())
        try:
            yield
        finally:
            self._news.pop(run_id, None)

    def hint(self, run_id: str) -> bool:
        """Notify the conversation of a run and tell whether there is one here."""
        found = self._news.get(run_id)
        if found is None:
            return False
        loop, news = found
        try:
            loop.call_soon_threadsafe(news.set)
        except RuntimeError:  # the loop has ended in the meantime, and nobody waits any more
            return False
        return True

    async def pause(self, run_id: str, seconds: float, cancelled: asyncio.Event | None = None) -> None:
        """Until the time is up, a hint comes or somebody asks to stop."""
        _, news = self._news.get(run_id) or (None, asyncio.Event())
        least = min(seconds, LEAST_PAUSE_SECONDS)
        await _first_of(least, cancelled)
        if seconds > least and not (cancelled is not None and cancelled.is_set()):
            await _first_of(seconds - least, news, cancelled)
        news.clear()


async def _first_of(seconds: float, *events: asyncio.Event | None) -> None:
    given = [event for event in events if event is not None]
    if any(event.is_set() for event in given):
        return
    waiting = [asyncio.ensure_future(event.wait()) for event in given]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)
    finally:
        for each in waiting:
            each.cancel()
