"""What a probe found, kept for a second: however many ask, the database is looked at once."""

from __future__ import annotations

import asyncio
import threading

from starlette.concurrency import run_in_threadpool

from horarium.operations import health as probes
from horarium.operations.health import Check, Readiness
from horarium.operations.resources import Resources
from horarium.recurrence.zone import tzdata_version

FRESH_SECONDS = 1.0
_LOOKS = 100
_LOOK_SECONDS = 0.05


class ProbeCache:
    """One look at a time; whoever comes meanwhile waits without a thread, which others need."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._looking = threading.Lock()
        self._found: tuple[float, Readiness] | None = None

    async def readiness(self) -> Readiness:
        for _ in range(_LOOKS):
            if (found := self._fresh()) is not None:
                return found
            if self._looking.acquire(blocking=False):
                try:
                    return await run_in_threadpool(self._look)
                finally:
                    self._looking.release()
            await asyncio.sleep(_LOOK_SECONDS)
        slow = Check("database", False, "the database takes too long to answer", "look at the database")
        return Readiness((slow,), tzdata_version())

    def _fresh(self) -> Readiness | None:
        if self._found is None:
            return None
        at, found = self._found
        return found if 0 <= self._resources.clock.monotonic() - at < FRESH_SECONDS else None

    def _look(self) -> Readiness:
        found = probes.ready(self._resources)
        self._found = (self._resources.clock.monotonic(), found)
        return found
