"""A database that delegates to another one what it does not override."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sqlalchemy import Connection

from horarium.clock import Clock
from horarium.store.database.transactions import Database
from horarium.store.database.wakeups import Listener, Told, Wake

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

    def listen(self, channels: Iterable[str], wake: Wake, told: Told | None = None) -> Listener:
        return self._inner.listen(channels, wake, told)

    def clock_offset(self, clock: Clock) -> int:
        return self._inner.clock_offset(clock)

    def close(self) -> None:
        raise RuntimeError("close the database where it was opened")
