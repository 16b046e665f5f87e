"""Run loops: step until there is nothing to do, sleep until there may be, and survive every error.

A loop that failed because of its database or its machine tries again within two seconds of the end of that fault. One
that fails for another reason, such as a bug, waits longer and longer. The log has one line when a loop begins to fail,
one for each other error, and one when it works again.

The engine waits for its database in threads of its own: asyncio's default threads are shared, so that a name that
resolves slowly, or a function of a user, would keep the ticker from ticking.

Python looks for garbage cycles after every 700 new objects. A batch of five hundred schedules makes a hundred times as
many, all of which are freed without it when the batch is done: the search found nothing and took a third of the time of
a tick. So a process searches rarely.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.instant import Instant
from horarium.platform.clock import Clock
from horarium.platform.database.errors import is_outage

_FIRST_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 30.0
OUTAGE_BACKOFF_SECONDS = 1.5
"""Maximum pause between attempts during an outage."""

# Of one series of failures, so that errors of which each is different do not fill the log.
_MAX_LOGGED_KINDS = 10


@dataclass(slots=True)
class Pulse:
    """When each loop last completed a step: a stuck step stops its pulse, whatever else goes on."""

    completed: dict[str, Instant] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    log: FilteringBoundLogger = field(default_factory=structlog.get_logger, repr=False)

    def set_back(self, now: Instant) -> None:
        """After the clock was set back: what lies ahead of it would look fresh for as long as it was ahead."""
        self.completed = {name: min(at, now) for name, at in self.completed.items()}


class Trouble:
    """Log the beginning of a series of failures, each other error in it, and its end: not each attempt."""

    def __init__(self, log: FilteringBoundLogger, failing: str, ended: str, **about: object) -> None:
        self._log = log
        self._failing = failing
        self._ended = ended
        self._about = about
        self._count = 0
        self._told: set[str] = set()

    def failed(self, error: Exception, **about: object) -> None:
        self._count += 1
        # What a driver says names ports and processes: it differs each time.
        kind = f"{type(error).__name__}: {getattr(error, 'shown', error)}"
        if kind not in self._told and len(self._told) < _MAX_LOGGED_KINDS:
            self._told.add(kind)
            self._log.error(self._failing, **self._about, error=str(error), **about)

    def over(self) -> None:
        if self._count:
            self._log.info(self._ended, **self._about, failures=self._count)
            self._count = 0
            self._told.clear()


@dataclass(frozen=True, slots=True)
class Loop:
    """`step` returns how many seconds to sleep unless woken; 0 asks for the next step at once."""

    name: str
    step: Callable[[], Awaitable[float]]


async def live(loop: Loop, stop: asyncio.Event, wake: asyncio.Event, clock: Clock, pulse: Pulse) -> None:
    """Step until `stop`. A database restart or a bug ends a step, never the loop."""
    backoff = _FIRST_BACKOFF_SECONDS
    trouble = Trouble(pulse.log, "loop_step_failed", "loop_step_recovered", loop=loop.name)
    while not stop.is_set():
        wake.clear()
        try:
            seconds = await loop.step()
        except Exception as error:
            pulse.failures[loop.name] = pulse.failures.get(loop.name, 0) + 1
            pulse.errors[loop.name] = f"{type(error).__name__}: {error}"
            longest = OUTAGE_BACKOFF_SECONDS if is_outage(error) else _LONGEST_BACKOFF_SECONDS
            backoff = min(backoff, longest)
            trouble.failed(error)
            await sleep_until_woken(stop, seconds=backoff)
            backoff = min(longest, backoff * 2)
            continue
        backoff = _FIRST_BACKOFF_SECONDS
        trouble.over()
        pulse.completed[loop.name] = clock.now()
        pulse.errors.pop(loop.name, None)
        if seconds > 0:
            await sleep_until_woken(wake, stop, seconds=seconds)


async def sleep_until_woken(*events: asyncio.Event, seconds: float) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


T = TypeVar("T")

# More than there are loops: none of them ever waits for a thread.
_THREADS = 20


class EngineThreads:
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


_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50


def settle_in() -> None:
    """Called once, when everything is loaded: what is there now stays, and need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
