"""The whole heart in one process: ticker, dispatcher, follower, janitor and the rarer chores, run together.

Any number of processes run one on the same database. Nothing here is a leader; a process that dies
leaves leases that run out and rows that others take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.engine.batch import Tick
from horarium.engine.dispatcher import Dispatcher, DispatcherOptions
from horarium.engine.follower import Follower
from horarium.engine.hands import HANDS, Hands
from horarium.engine.janitor import Janitor, Tidied
from horarium.engine.loop import Loop, Pulse, live
from horarium.engine.repair import PASS_SECONDS as REPAIR_SECONDS
from horarium.engine.repair import Repair
from horarium.engine.retention import PASS_SECONDS as RETENTION_SECONDS
from horarium.engine.retention import Retention, RetentionOptions
from horarium.engine.settlement import Settlement
from horarium.engine.ticker import Ticker, TickerOptions
from horarium.engine.tzdata import REST_SECONDS, TzdataUpgrade
from horarium.instant import SECOND, Instant
from horarium.launchers.registry import Registry
from horarium.store import leases
from horarium.store.channels import DUE, READY
from horarium.store.database import Database
from horarium.store.runs import Work

_OFFSET_SECONDS = 60
_BEAT_SECONDS = 5
_FIRST_BEAT_SECONDS = 0.1
# Between two steps of a chore that has more to do: it must never crowd out the tick.
_CHORE_PAUSE_SECONDS = 0.05
# Between two looks for what should never be wrong: in a hurry they took 6 % of a core, and there is none.
_LOOK_PAUSE_SECONDS = 2.0


class Witness(Protocol):
    """Whoever counts and tells what the engine does; it hears only of what is committed."""

    def ticked(self, tick: Tick, now: Instant) -> None: ...
    def settled(self, answers: Sequence[tuple[Work, Settlement]], now: Instant) -> None: ...
    def tidied(self, tidied: Tidied, now: Instant) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    ticker: TickerOptions = field(default_factory=TickerOptions)
    dispatcher: DispatcherOptions = field(default_factory=DispatcherOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)
    longest_sleep_seconds: float = 1.0
    janitor_seconds: float = 2.0
    follower_seconds: float = 1.0
    stop_grace_seconds: float = 10.0
    ticks: bool = True
    dispatches: bool = True


class SharedClock:
    """The clock that all processes on one database agree on: ours, corrected by the measured offset."""

    def __init__(self, clock: Clock, database: Database) -> None:
        self._clock = clock
        self._database = database
        self._offset = 0

    def measure(self) -> None:
        self._offset = self._database.clock_offset(self._clock)

    def now(self) -> Instant:
        return self._clock.now() + self._offset

    def monotonic(self) -> float:
        return self._clock.monotonic()


class Engine:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        *,
        owner: str,
        witness: Witness,
        options: EngineOptions | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        log = log or structlog.get_logger()
        self.options = options or EngineOptions()
        self.clock = SharedClock(clock, database)
        self.pulse = Pulse(log=log)
        self._database = database
        self._registry = registry
        self._owner = owner
        self._witness = witness
        self.ticker = Ticker(database, self.clock, owner, self.options.ticker)
        self._hands = Hands(self.ticker, HANDS[database.dialect])
        self.dispatcher = Dispatcher(database, self.clock, registry, owner, self.options.dispatcher, witness, log)
        self.janitor = Janitor(database, self.clock, self.options.dispatcher.launch_retry, log)
        self.follower = Follower(database, self.clock, registry)
        self.retention = Retention(database, self.clock, self.options.retention)
        self.tzdata = TzdataUpgrade(database, self.clock, log)
        self.repair = Repair(database, self.clock, log)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then nothing new is claimed, and what is in hand is finished or given back."""
        await asyncio.to_thread(self.clock.measure)
        due, ready = asyncio.Event(), asyncio.Event()
        here = asyncio.get_running_loop()

        def wake(channel: str) -> None:
            here.call_soon_threadsafe((due if channel == DUE else ready).set)

        listener = self._database.listen([DUE, READY], wake)
        await self._registry.start()
        try:
            await asyncio.gather(*self._loops(stop, due, ready))
        finally:
            listener.close()
            await self._registry.close()

    def _loops(self, stop: asyncio.Event, due: asyncio.Event, ready: asyncio.Event) -> list[asyncio.Task[None]]:
        never = asyncio.Event()
        loops = [(Loop("clock", self._measure_step), never), (Loop("heartbeat", self._beat_step), never)]
        if self.options.ticks:
            loops += [(Loop("ticker", self._tick_step), due), (Loop("janitor", self._janitor_step), never)]
            loops += [(Loop("tzdata", self._tzdata_step), never), (Loop("repair", self._repair_step), never)]
            loops.append((Loop("retention", self._retention_step), never))
        if self.options.dispatches:
            loops.append((Loop("follower", self._follower_step), never))
        tasks = [
            asyncio.create_task(live(loop, stop, wake, self.clock, self.pulse), name=loop.name) for loop, wake in loops
        ]
        if self.options.dispatches:
            grace = self.options.stop_grace_seconds
            tasks.append(asyncio.create_task(self.dispatcher.run(stop, ready, grace, self.pulse), name="dispatcher"))
        return tasks

    async def _tick_step(self) -> float:
        next_due = await asyncio.to_thread(self.ticker.next_due)
        now = self.clock.now()
        if next_due is None or next_due > now:
            await asyncio.to_thread(self.ticker.beat)
            wait = self.options.longest_sleep_seconds
            return wait if next_due is None else min(wait, max((next_due - now) / SECOND, 0.001))
        shares = await self._hands.step()
        ticks = [tick for share in shares for tick in share.ticks]
        for tick in ticks:
            self._witness.ticked(tick, now)
        for error in filter(None, (share.error for share in shares)):
            raise error
        return 0 if any(tick.claimed for tick in ticks) else 0.05  # due, but another ticker has it

    async def _janitor_step(self) -> float:
        tidied = await asyncio.to_thread(self.janitor.step)
        if tidied.total:
            self._witness.tidied(tidied, self.clock.now())
        return 0 if tidied.full and tidied.total else self.options.janitor_seconds

    async def _follower_step(self) -> float:
        await self.follower.step()
        return self.options.follower_seconds

    async def _tzdata_step(self) -> float:
        more = await asyncio.to_thread(self.tzdata.step)
        return _CHORE_PAUSE_SECONDS if more else REST_SECONDS

    async def _repair_step(self) -> float:
        repaired = await asyncio.to_thread(self.repair.step)
        if repaired.planned:  # somebody would have waited for ever; there may be others
            return _CHORE_PAUSE_SECONDS
        return _LOOK_PAUSE_SECONDS if repaired.more else REPAIR_SECONDS

    async def _retention_step(self) -> float:
        forgotten = await asyncio.to_thread(self.retention.step)
        return _CHORE_PAUSE_SECONDS if forgotten.more else RETENTION_SECONDS

    async def _measure_step(self) -> float:
        await asyncio.to_thread(self.clock.measure)
        return _OFFSET_SECONDS

    async def _beat_step(self) -> float:
        """One row for this process: each loop with the instant at which it last completed a step."""
        info = {name: at for name, at in self.pulse.completed.items() if name != "heartbeat"}
        now = self.clock.now()
        await asyncio.to_thread(
            self._database.write,
            lambda connection: leases.beat(connection, f"process:{self._owner}", self._owner, now, 30, info),
        )
        # Until the first tick is done nobody can say that we are well: look again soon.
        begun = not self.options.ticks or "ticker" in info
        return _BEAT_SECONDS if begun else _FIRST_BEAT_SECONDS
