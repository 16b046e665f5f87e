"""The engine of one process: ticker, dispatcher, follower, janitor and the rarer chores, run together.

Any number of processes run one on the same database. There is no leader; a process that dies leaves leases that expire
and rows that others take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.decision.facts import Hold
from horarium.core.lifecycle.outcome import ReportTokens
from horarium.engine.advancer import Advancer
from horarium.engine.chores import COUNT_SECONDS as USAGE_SECONDS
from horarium.engine.chores import (
    DISPATCHER,
    TICKER,
    TZDATA_SECONDS,
    HealthWatch,
    ProcessHeartbeat,
    TzdataUpgrade,
    UsageCount,
)
from horarium.engine.chores import HEALTH_LOOK_SECONDS as HEALTH_SECONDS
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.deliverer import Deliverer
from horarium.engine.dispatcher import Dispatcher
from horarium.engine.follower import Follower
from horarium.engine.janitor import REPAIR_SECONDS, Janitor, JanitorResult, Repair
from horarium.engine.loop import EngineThreads, Loop, Pulse, live
from horarium.engine.partitions import (
    ARCHIVE_AFTER_DAYS,
    ARCHIVE_SECONDS,
    UPKEEP_SECONDS,
    Archiving,
    PartitionUpkeep,
    UpkeepResult,
)
from horarium.engine.partitions import FIRST_SECONDS as UPKEEP_FIRST_SECONDS
from horarium.engine.retention import PASS_SECONDS as RETENTION_SECONDS
from horarium.engine.retention import RetentionLoop, RetentionOptions
from horarium.engine.ticker import TICK_THREADS, ParallelTicker, Tick, Ticker, TickerOptions
from horarium.features.runs.preparation import Preparers
from horarium.features.runs.transition_rows import SettledRun
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import SECOND, Instant
from horarium.launchers.registry import Registry
from horarium.launchers.signals import Signals
from horarium.platform.database import Database
from horarium.platform.database.installation import Sealer
from horarium.platform.database.processes import About
from horarium.platform.database.schema import newest_revision
from horarium.platform.database.wakeups import DUE, PUSHED, READY
from horarium.platform.database.wrapper import LOOK_SECONDS, SharedClock

# Between two steps of a chore that has more to do: it must never crowd out the tick.
_CHORE_PAUSE_SECONDS = 0.05
# Between two looks for what should never be wrong: in a hurry they took 6 % of a core, and there is none.
_LOOK_PAUSE_SECONDS = 2.0
# Between two pieces of the count of bytes: of a large database it takes a twentieth of a core.
_COUNT_PAUSE_SECONDS = 0.5


class EngineObserver(Protocol):
    """Whoever counts and tells what the engine does; it hears only of what is committed."""

    def ticked(self, tick: Tick, now: Instant) -> None: ...
    def settled(self, runs: Sequence[SettledRun], now: Instant) -> None: ...
    def tidied(self, tidied: JanitorResult, now: Instant) -> None: ...
    def upkept(self, upkept: UpkeepResult, now: Instant) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    ticker: TickerOptions = field(default_factory=TickerOptions)
    dispatcher: DispatcherOptions = field(default_factory=DispatcherOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)
    archive_after_days: int = ARCHIVE_AFTER_DAYS
    failing_after: int = 3
    longest_sleep_seconds: float = 1.0
    janitor_seconds: float = 2.0
    follower_seconds: float = 1.0
    stop_grace_seconds: float = 10.0
    ticks: bool = True
    dispatches: bool = True


class Engine:
    def __init__(
        self,
        database: Database,
        clock: SharedClock,
        registry: Registry,
        *,
        owner: str,
        observer: EngineObserver,
        preparers: Preparers,
        about: About | None = None,
        options: EngineOptions | None = None,
        log: FilteringBoundLogger | None = None,
        tokens: ReportTokens | None = None,
        signals: Signals | None = None,
        deliverer: Deliverer | None = None,
        sealer: Sealer | None = None,
        quotas: QuotaBook | None = None,
    ) -> None:
        log = log or structlog.get_logger()
        self.options = options or EngineOptions()
        self.clock = clock
        self.pulse = Pulse(log=log)
        self._database = database
        self._registry = registry
        self._observer = observer
        self._threads = EngineThreads()
        self.heartbeat = ProcessHeartbeat(
            database,
            clock,
            self._threads,
            self.pulse,
            owner=owner,
            about=about or About(owner, schema=newest_revision()),
            serves=lambda: registry.served().document(),
        )
        delivery = self.options.dispatcher
        self.ticker = Ticker(database, self.clock, owner, self.options.ticker, signals, quotas)
        self._ticking = ParallelTicker(self.ticker, TICK_THREADS[database.dialect], self._threads)
        self.dispatcher = Dispatcher(
            database,
            self.clock,
            registry,
            owner,
            delivery,
            observer,
            log,
            preparers=preparers,
            tokens=tokens,
            threads=self._threads,
        )
        self.janitor = Janitor(database, self.clock, delivery.launch_retry, log, delivery.caps)
        self.advancer = Advancer(database, self.clock, registry.kinds, delivery.caps, log)
        self.follower = Follower(
            database, self.clock, registry, delivery.launch_retry, self._threads, sealer, delivery.caps, log
        )
        self.usage = UsageCount(database, self.clock)
        self.retention = RetentionLoop(database, self.clock, self.options.retention, log)
        self.partitions = PartitionUpkeep(database, self.clock, self.retention.cutoffs, log)
        self.archiving = Archiving(database, self.clock, self.retention.cutoffs, self.options.archive_after_days)
        self.tzdata = TzdataUpgrade(database, self.clock, log)
        self.repair = Repair(database, self.clock, log)
        self.health = HealthWatch(database, self.clock, self.options.failing_after)
        self.deliverer = deliverer
        self._spread = asyncio.Event()
        self._released_until = clock.now()

    def stay_in_one_thread(self) -> None:
        """For who calls the steps of the loops one after the other instead of `run`."""
        self._threads.stay_here()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then nothing new is claimed, and what is in hand is finished or given back."""
        await self._threads.run(self.clock.measure)
        over = asyncio.Event()
        self.takes_part()
        beating = asyncio.create_task(self.heartbeat.run(over, stop), name="heartbeat")
        try:
            await self.work(stop)
        finally:
            over.set()
            await asyncio.gather(beating, return_exceptions=True)

    def takes_part(self) -> None:
        """The heartbeat says what this engine does from now on."""
        if self.options.ticks:
            self.heartbeat.takes_part(TICKER, "janitor")
            self.heartbeat.beats_for(self.ticker)
        if self.options.dispatches:
            self.heartbeat.takes_part(DISPATCHER, "follower", "advancer", *(["deliverer"] if self.deliverer else []))

    async def work(self, stop: asyncio.Event) -> None:
        """As `run`, for a process that does more than this: it has measured its clock, and lets its heart beat."""
        due, ready, noted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        here = asyncio.get_running_loop()

        def wake(channel: str) -> None:
            for event in {DUE: (due,), READY: (ready, noted)}.get(channel, ()):
                here.call_soon_threadsafe(event.set)

        def told(channel: str, said: str) -> None:
            if channel == PUSHED:
                self._registry.hint(said)

        listener = self._database.listen([DUE, READY, PUSHED], wake, told)
        await self._registry.start()
        try:
            await asyncio.gather(*self._loops(stop, due, ready, noted))
        finally:
            listener.close()
            if self.deliverer is not None:
                await self.deliverer.stop()
            await self._registry.close()

    def close(self) -> None:
        """Nobody runs it any more."""
        self._threads.close()
        if self.deliverer is not None:
            self.deliverer.close()

    def _loops(
        self, stop: asyncio.Event, due: asyncio.Event, ready: asyncio.Event, noted: asyncio.Event
    ) -> list[asyncio.Task[None]]:
        never = asyncio.Event()
        loops = [(Loop("clock", self._measure_step), never)]
        if self.options.ticks:
            loops += [(Loop("ticker", self._tick_step), due), (Loop("janitor", self._janitor_step), never)]
            loops.append((Loop("release", self._release_step), self._spread))
            loops += [(Loop("tzdata", self._tzdata_step), never), (Loop("repair", self._repair_step), never)]
            loops += [(Loop("retention", self._retention_step), never), (Loop("health", self._health_step), never)]
            loops.append((Loop("usage", self._usage_step), never))
            if self._database.dialect == "postgresql":
                loops.append((Loop("partitions", self._partitions_step), never))
                loops.append((Loop("archive", self._archive_step), never))
        if self.options.dispatches:
            loops.append((Loop("follower", self._follower_step), never))
            loops.append((Loop("advancer", self._advance_step), noted))
            if self.deliverer is not None:
                loops.append((Loop("deliverer", self.deliverer.step), never))
        tasks = [
            asyncio.create_task(live(loop, stop, wake, self.clock, self.pulse), name=loop.name) for loop, wake in loops
        ]
        if self.options.dispatches:
            grace = self.options.stop_grace_seconds
            tasks.append(asyncio.create_task(self.dispatcher.run(stop, ready, grace, self.pulse), name="dispatcher"))
        return tasks

    async def _tick_step(self) -> float:
        next_due = await self._threads.run(self.ticker.next_due)
        now = self.clock.now()
        if next_due is None or next_due > now:
            await self._threads.run(self.ticker.beat)
            wait = self.options.longest_sleep_seconds
            return wait if next_due is None else min(wait, max((next_due - now) / SECOND, 0.001))
        shares = await self._ticking.step()
        ticks = [tick for share in shares for tick in share.ticks]
        for tick in ticks:
            self._observer.ticked(tick, now)
            self._await_spread(tick)
        for error in filter(None, (share.error for share in shares)):
            raise error
        return (
            0 if any(tick.claimed for tick in ticks) else 0.05
        )  # due, but another ticker has it, or a signal is awaited

    async def _janitor_step(self) -> float:
        tidied = await self._threads.run(self.janitor.step)
        if tidied.total:
            self._observer.tidied(tidied, self.clock.now())
        return 0 if tidied.full and tidied.total else self.options.janitor_seconds

    async def _release_step(self) -> float:
        """Release spread runs at their times. Those that another process has spread are found within a janitor step."""
        after, now = self._released_until, self.clock.now()
        self._released_until = now
        try:
            released = await self._threads.run(lambda: self.janitor.release_due(after, now))
        except Exception:
            self._released_until = min(after, self._released_until)
            raise
        if released.runs:
            self._observer.tidied(JanitorResult(released=released.runs), self.clock.now())
        if released.next_at is None:
            return self.options.janitor_seconds
        return min(self.options.janitor_seconds, max((released.next_at - self.clock.now()) / SECOND, 0))

    def _await_spread(self, tick: Tick) -> None:
        """Look at once for the times of runs that a tick has spread."""
        decisions = (decision for decided in tick.decided for decision in decided.decisions)
        times = (each.release_at for each in decisions if isinstance(each, Hold) and each.release_at is not None)
        first = min(times, default=None)
        if first is not None:
            self._released_until = min(self._released_until, first - 1)
            self._spread.set()

    async def _advance_step(self) -> float:
        advanced = await self._threads.run(self.advancer.step)
        if advanced.ended:
            self._observer.settled(advanced.ended, self.clock.now())
        if advanced.total:
            return 0
        return _CHORE_PAUSE_SECONDS if advanced.busy else self.options.longest_sleep_seconds

    async def _follower_step(self) -> float:
        await self.follower.step()
        return self.options.follower_seconds

    async def _tzdata_step(self) -> float:
        more = await self._threads.run(self.tzdata.step)
        return _CHORE_PAUSE_SECONDS if more else TZDATA_SECONDS

    async def _repair_step(self) -> float:
        repaired = await self._threads.run(self.repair.step)
        if repaired.planned:  # somebody would have waited for ever; there may be others
            return _CHORE_PAUSE_SECONDS
        return _LOOK_PAUSE_SECONDS if repaired.more else REPAIR_SECONDS

    async def _retention_step(self) -> float:
        forgotten = await self._threads.run(self.retention.step)
        return _CHORE_PAUSE_SECONDS if forgotten.more else RETENTION_SECONDS

    async def _partitions_step(self) -> float:
        """The first time it only waits: nobody misses them at once, and many processes may start together."""
        if "partitions" not in self.pulse.completed:
            return UPKEEP_FIRST_SECONDS
        upkept = await self._threads.run(self.partitions.step)
        self._observer.upkept(upkept, self.clock.now())
        if upkept.more:
            return _CHORE_PAUSE_SECONDS
        return UPKEEP_FIRST_SECONDS if upkept.busy else UPKEEP_SECONDS

    async def _archive_step(self) -> float:
        moved = await self._threads.run(self.archiving.step)
        if moved.after is None:
            return ARCHIVE_SECONDS
        # To look at what stays is not to be felt; what moves is to keep up with what is born.
        return _CHORE_PAUSE_SECONDS if moved.rows else _COUNT_PAUSE_SECONDS

    async def _usage_step(self) -> float:
        more = await self._threads.run(self.usage.step)
        return _COUNT_PAUSE_SECONDS if more else USAGE_SECONDS

    async def _health_step(self) -> float:
        """The first time it only waits: what came due while nobody ticked is decided first, and needs nobody then."""
        if "health" in self.pulse.completed:
            await self._threads.run(self.health.step)
        return HEALTH_SECONDS

    async def _measure_step(self) -> float:
        if self.clock.must_be_measured():
            await self._threads.run(self.clock.measure)
        return LOOK_SECONDS
