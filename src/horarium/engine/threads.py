"""The threads in which the engine waits for its database: its own, so that nobody else's waiting can take them.

asyncio's default threads are everybody's: a name that resolves slowly, or a function of a user, would keep
the ticker from ticking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# More than there are loops: none of them ever waits for a thread.
_THREADS = 20


class Threads:
    """Made once for each engine; threads start when they are first needed."""

    def __init__(self, count: int = _THREADS) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="horarium-database")
        self._here = False

    def stay_here(self) -> None:
        """From now on the loop's own thread waits: for who drives the engine step by step."""
        self._here = True

    async def run(self, call: Callable[[], T]) -> T:
        if self._here:
            return call()
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        self._pool.shutdown(wait=False)
