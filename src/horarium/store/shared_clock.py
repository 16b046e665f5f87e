"""What time it is for all who use one database: the machine's clock, corrected by the measured offset.

Every part of a process asks this one. If the engine decided by it and the API by the machine's own, a schedule
that was created on a machine forty seconds off would fire for a time before it existed.
"""

from __future__ import annotations

from horarium.clock import Clock
from horarium.instant import Instant
from horarium.store.database import Database

# How often it is measured again.
OFFSET_SECONDS = 60


class SharedClock:
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
