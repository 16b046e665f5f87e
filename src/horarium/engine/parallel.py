"""More threads for a full batch: while the database writes one batch, another is being thought about.

An ordinary tick is one batch in one thread. When it was full, the next ones are shared by several
threads, which the database treats as it treats several processes. SQLite has one writer: one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from horarium.engine.batch import Tick
from horarium.engine.threads import Threads
from horarium.engine.ticker import Ticker
from horarium.store.database import Dialect

# A third would wait for the interpreter more than it works (seen in benchmarks/herd.py).
TICK_THREADS: Final[Mapping[Dialect, int]] = MappingProxyType({"postgresql": 2, "sqlite": 1})
# Batches that a thread takes before all meet: fewer leave threads idle, more keep the pulse waiting.
_BATCHES = 16


class Share(NamedTuple):
    """Ticks of one thread; with an `error` it stopped there, and the earlier ticks are committed."""

    ticks: tuple[Tick, ...]
    error: Exception | None = None


class ParallelTicker:
    def __init__(self, ticker: Ticker, count: int, threads: Threads | None = None) -> None:
        self._ticker = ticker
        self._count = count
        self._threads = threads or Threads()
        self._was_full = False

    async def step(self) -> list[Share]:
        """One batch; after a full one, a few for each thread."""
        if self._was_full:
            shares = await asyncio.gather(
                *(self._threads.run(lambda: self._take(_BATCHES)) for _ in range(self._count))
            )
        else:
            shares = [await self._threads.run(lambda: self._take(1))]
        self._was_full = self._count > 1 and all(share.ticks and share.ticks[-1].more for share in shares)
        return shares

    def _take(self, batches: int) -> Share:
        ticks: list[Tick] = []
        try:
            while len(ticks) < batches and (not ticks or ticks[-1].more):
                ticks.append(self._ticker.step())
        except Exception as error:  # told by whoever asked, after what the other threads did
            return Share(tuple(ticks), error)
        return Share(tuple(ticks))
