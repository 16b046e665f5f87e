"""What time it is for all who use one database: the database's own time, measured now and then and counted on.

Every part of a process asks this one. If the engine decided by it and the API by the machine's own, a schedule
that was created on a machine forty seconds off would fire for a time before it existed. Between two measurements
the time is counted by the monotonic clock, so that a machine whose clock is set does not take us along. SQLite has
no clock: there the machine's own is what all share.
"""

from __future__ import annotations

from typing import NamedTuple

from horarium.clock import Clock
from horarium.instant import SECOND, Instant
from horarium.store.database.transactions import Database

MEASURE_SECONDS = 60
"""How often it is measured at least."""
LOOK_SECONDS = 1.0
"""How often to ask whether it must be measured."""
# The machine's clock was set, or it slept: monotonic time may have stood still meanwhile.
_STEP = SECOND


class _Measured(NamedTuple):
    """At one moment: the shared time, the machine's own, and the monotonic clock in microseconds."""

    shared: Instant
    machine: Instant
    monotonic: int


class SharedClock:
    def __init__(self, clock: Clock, database: Database) -> None:
        self._clock = clock
        self._database = database
        self._measured: _Measured | None = None

    def measure(self) -> None:
        if self._database.dialect == "sqlite":
            return
        offset = self._database.clock_offset(self._clock)
        machine, monotonic = self._clock.now(), self._monotonic()
        self._measured = _Measured(machine + offset, machine, monotonic)

    def now(self) -> Instant:
        measured = self._measured
        if measured is None:
            return self._clock.now()
        return measured.shared + self._monotonic() - measured.monotonic

    def offset(self) -> int | None:
        """Microseconds that the machine's clock was behind the shared one when that was measured; None = never."""
        measured = self._measured
        return None if measured is None else measured.shared - measured.machine

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def must_be_measured(self) -> bool:
        """The last time is too long ago, or the machine's clock does not agree with the monotonic one any more."""
        measured = self._measured
        if measured is None:
            return True
        passed = self._monotonic() - measured.monotonic
        return passed >= MEASURE_SECONDS * SECOND or abs(self._clock.now() - measured.machine - passed) > _STEP

    def _monotonic(self) -> int:
        return round(self._clock.monotonic() * SECOND)
