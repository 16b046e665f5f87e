"""Clock of the service: the only module that reads the time.

All other modules take `now` as an argument, so that a test sets the time.
"""

from __future__ import annotations

import time
from typing import Protocol

from horarium.instant import Instant


class Clock(Protocol):
    def now(self) -> Instant:
        """The present instant; it may step when the machine's clock is set."""

    def monotonic(self) -> float:
        """Seconds from some fixed point that never go back: for measuring how long something took."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> Instant:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()
