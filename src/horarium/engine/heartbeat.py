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
from horarium.engine.loop import Loop, Pulse, live
from horarium.engine.threads import Threads
from horarium.errors import HorariumError
from horarium.store import processes
from horarium.store.database import Database
from horarium.store.database.shared_clock import SharedClock
from horarium.store.processes import About, Process

_FIRST_BEAT_SECONDS = 0.1
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

    def takes_part(self, *roles: str) -> None:
        """What else this process does; a role that it has is not told twice."""
        self._about = replace(self._about, roles=tuple(dict.fromkeys([*self._about.roles, *roles])))

    async def run(self, over: asyncio.Event, stop: asyncio.Event) -> None:
        """Until it is over; from `stop` on whoever looks at the processes sees at once that this one takes no more."""
        self._about = replace(self._about, started_at=self._clock.now())
        hurry = asyncio.Event()
        telling = asyncio.create_task(self._drain(stop, hurry), name="drain")
        try:
            await live(Loop(_NAME, self.step), over, hurry, self._clock, self._pulse)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            with suppress(HorariumError):  # the row grows old then
                await self._threads.run(lambda: self._database.write(lambda c: processes.leave(c, self._owner)))

    async def step(self) -> float:
        completed = {name: at for name, at in self._pulse.completed.items() if name != _NAME}
        serves = self._serves() if DISPATCHER in self._about.roles else None
        process = Process(self._about, completed, serves, self._draining, self._clock.offset())
        now, owner = self._clock.now(), self._owner
        await self._threads.run(lambda: self._database.write(lambda c: processes.beat(c, owner, process, now)))
        # Until the first tick is done nobody can say that we are well: look again soon.
        begun = TICKER not in self._about.roles or TICKER in completed or self._draining
        return BEAT_SECONDS if begun else _FIRST_BEAT_SECONDS

    async def _drain(self, stop: asyncio.Event, hurry: asyncio.Event) -> None:
        await stop.wait()
        self._draining = True
        hurry.set()
