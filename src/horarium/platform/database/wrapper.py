"""Databases that delegate to another one, and the clock that processes share.

Every part of a process uses the time of the database, measured at intervals. If the engine used it and the API used
the clock of the machine, a schedule created on a machine that is 40 seconds off would fire for a time before it
existed. Between two measurements the monotonic clock counts, so that a change of the machine's clock has no effect.
SQLite has no clock: its users share the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from horarium.instant import SECOND, Instant
from horarium.platform.clock import Clock
from horarium.platform.database.transactions import Database
from horarium.platform.database.wakeups import NoticeHandler, Wake, WakeupListener

T = TypeVar("T")


class DatabaseWrapper(Database):
    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.dialect = inner.dialect
        self.engine = inner.engine
        self.url = inner.url

    def watch_writes(self, observe: Callable[[float], None]) -> None:
        self._inner.watch_writes(observe)

    def write(self, work: Callable[[Connection], T]) -> T:
        return self._inner.write(work)

    def write_reserved(self, work: Callable[[Connection], T]) -> T:
        return self._inner.write_reserved(work)

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        return self._inner.write_planned(work)

    def preview(self, work: Callable[[Connection], T]) -> T:
        return self._inner.preview(work)

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._inner.read(work)

    def glance(self, work: Callable[[Connection], T]) -> T:
        return self._inner.glance(work)

    def notify(self, connection: Connection, channel: str, payload: str = "") -> None:
        self._inner.notify(connection, channel, payload)

    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupListener:
        return self._inner.listen(channels, wake, told)

    def clock_offset(self, clock: Clock) -> int:
        return self._inner.clock_offset(clock)

    def close(self) -> None:
        raise RuntimeError("close the database where it was opened")


class JoinedTransaction(DatabaseWrapper):
    """Valid until the outer transaction ends, on its thread."""

    def __init__(self, outer: Database, connection: Connection) -> None:
        super().__init__(outer)
        self._connection = connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Write in a savepoint: an error that the caller handles, such as a Conflict, does not affect the rest."""
        with self._connection.begin_nested():
            return work(self._connection)

    def write_reserved(self, work: Callable[[Connection], T]) -> T:
        return self.write(work)

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        """Do as `write`: the outer transaction is planned already."""
        return self.write(work)

    def preview(self, work: Callable[[Connection], T]) -> T:
        """Roll the savepoint back at the end."""
        savepoint = self._connection.begin_nested()
        try:
            return work(self._connection)
        finally:
            savepoint.rollback()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read with the writes of the outer transaction."""
        return work(self._connection)

    def glance(self, work: Callable[[Connection], T]) -> T:
        return self.read(work)


MEASURE_SECONDS = 60
"""The maximum interval between measurements."""
LOOK_SECONDS = 1.0
"""The interval of checks whether a measurement is due."""
# The machine's clock was set, or it slept: monotonic time may have stood still meanwhile.
_STEP = SECOND


class _Measured(NamedTuple):
    """The shared time, the machine's time and the monotonic clock at one moment, in microseconds."""

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
        """Return the microseconds that the machine was behind at the last measurement; None = there was none."""
        measured = self._measured
        return None if measured is None else measured.shared - measured.machine

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def must_be_measured(self) -> bool:
        """Return whether the last measurement is old, or the machine's clock was changed since."""
        measured = self._measured
        if measured is None:
            return True
        passed = self._monotonic() - measured.monotonic
        return passed >= MEASURE_SECONDS * SECOND or abs(self._clock.now() - measured.machine - passed) > _STEP

    def _monotonic(self) -> int:
        return round(self._clock.monotonic() * SECOND)
