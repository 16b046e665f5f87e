"""How a loop lives: step until there is nothing to do, sleep until there may be, and never die of an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.instant import Instant

_FIRST_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 30.0


@dataclass(slots=True)
class Pulse:
    """When each loop last completed a step: a stuck step stops its pulse, whatever else goes on."""

    completed: dict[str, Instant] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    log: FilteringBoundLogger = field(default_factory=structlog.get_logger, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`step` returns how many seconds to sleep unless woken; 0 asks for the next step at once."""

    name: str
    step: Callable[[], Awaitable[float]]


async def live(loop: Loop, stop: asyncio.Event, wake: asyncio.Event, clock: Clock, pulse: Pulse) -> None:
    """The only place that catches everything: a database restart or a bug ends a step, never the loop."""
    backoff = _FIRST_BACKOFF_SECONDS
    while not stop.is_set():
        wake.clear()
        try:
            seconds = await loop.step()
        except Exception as error:
            pulse.failures[loop.name] = pulse.failures.get(loop.name, 0) + 1
            pulse.errors[loop.name] = f"{type(error).__name__}: {error}"
            pulse.log.error("step failed", loop=loop.name, error=str(error), retry_in_seconds=backoff)
            await sleep_until_woken(stop, seconds=backoff)
            backoff = min(_LONGEST_BACKOFF_SECONDS, backoff * 2)
            continue
        backoff = _FIRST_BACKOFF_SECONDS
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
