"""Databases that delegate to another one, among them one inside an open transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sqlalchemy import Connection

from horarium.platform.clock import Clock
from horarium.platform.database.transactions import Database
from horarium.platform.database.wakeups import Told, Wake, WakeupListener

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

    def listen(self, channels: Iterable[str], wake: Wake, told: Told | None = None) -> WakeupListener:
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
