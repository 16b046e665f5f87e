"""How a process says that it lives: one row, written every few seconds, gone when it ends in good order.

The row also says who the process is, what it does and whether it is leaving, and when each of its loops last completed
a step. It is the last thing that a process gives up: as long as it does anything at all, it can be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from horarium.decision.process_state import BEAT_SECONDS
from horarium.engine.loop import Loop, Pulse, live, sleep_until_woken
from horarium.engine.threads import Threads
from horarium.engine.ticker import Ticker
from horarium.errors import HorariumError
from horarium.instant import SECOND, Instant
from horarium.store import processes
from horarium.store.database import Database
from horarium.store.database.shared_clock import SharedClock
from horarium.store.processes import About, Process

_FIRST_BEAT_SECONDS = 0.1
# How often the clock is looked at; a step back by less changes nothing that matters.
_LOOK_SECONDS = 1.0
_STEP_BACK: Instant = 5 * SECOND
_NAME = "heartbeat"
TICKER, DISPATCHER = "ticker", "dispatcher"


class Heartbeat:
    """`serves` says what can be launched here, if this process comes to hand out runs."""

    def __init__(
        self,
        database: Database,
        clock: SharedClock,
        threads: Threads,
        pulse: Pulse,
        *,
        owner: str,
        about: About,
        serves: Callable[[], object],
    ) -> None:
        self._database = database
        self._clock = clock
        self._threads = threads
        self._pulse = pulse
        self._owner = owner
        self._about = about
        self._serves = serves
        self._draining = False
        self._ticker: Ticker | None = None
        self._hurry = asyncio.Event()
        self._looked_at = clock.now()

    def beats_for(self, ticker: Ticker) -> None:
        """Record that the ticker is there as well, also while its own step waits for the database."""
        self._ticker = ticker

    def takes_part(self, *roles: str) -> None:
        """Add roles of this process; one that it already has is not repeated."""
        self._about = replace(self._about, roles=tuple(dict.fromkeys([*self._about.roles, *roles])))

    async def run(self, over: asyncio.Event, stop: asyncio.Event) -> None:
        """Until it is over; from `stop` on whoever looks at the processes sees at once that this one takes no more."""
        self._about = replace(self._about, started_at=self._clock.now())
        beside = [
            asyncio.create_task(self._drain(stop), name="drain"),
            asyncio.create_task(self._look(over), name="presence"),
        ]
        try:
            await live(Loop(_NAME, self.step), over, self._hurry, self._clock, self._pulse)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            with suppress(HorariumError):  # the row grows old then
                await self._threads.run(
                    lambda: self._database.write_reserved(lambda c: processes.leave(c, self._owner))
                )

    async def step(self) -> float:
        completed = {name: at for name, at in self._pulse.completed.items() if name != _NAME}
        serves = self._serves() if DISPATCHER in self._about.roles else None
        process = Process(self._about, completed, serves, self._draining, self._clock.offset())
        now, owner = self._clock.now(), self._owner
        await self._threads.run(lambda: self._database.write_reserved(lambda c: processes.beat(c, owner, process, now)))
        ticker = self._ticker
        if ticker is not None and not self._draining:
            await self._threads.run(lambda: ticker.beat(waits=False))
        # Until a tick is done the process does not look ready: record the first one, and the first after a fault, soon.
        if TICKER not in self._about.roles or self._draining:
            return BEAT_SECONDS
        ticked_at = completed.get(TICKER)
        if ticked_at is None:
            return _FIRST_BEAT_SECONDS
        return BEAT_SECONDS if now - ticked_at <= BEAT_SECONDS * SECOND else _LOOK_SECONDS

    def look(self) -> None:
        """Count the ticker as present, and notice a clock that was set back: what it left ahead must not look alive."""
        now = self._clock.now()
        if self._ticker is not None:
            self._ticker.observe()
        # A clock that was ahead only between two looks shows in the steps that were completed meanwhile.
        if max((self._looked_at, *self._pulse.completed.values())) - now > _STEP_BACK:
            self._pulse.set_back(now)
            self._hurry.set()
        self._looked_at = now

    async def _look(self, over: asyncio.Event) -> None:
        """In no thread and without the database: both may be what everything else waits for."""
        while not over.is_set():
            self.look()
            await sleep_until_woken(over, seconds=_LOOK_SECONDS)

    async def _drain(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._draining = True
        self._hurry.set()
