"""A database inside a transaction that is already open: whoever works with it takes part in that transaction.

So an operation, which opens its own transaction everywhere else, can be made one part of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sqlalchemy import Connection

from horarium.clock import Clock
from horarium.store.database import Database
from horarium.store.wakeups import Listener, Wake

T = TypeVar("T")


class Joined(Database):
    """Good until the outer transaction ends, on the thread that has it."""

    def __init__(self, outer: Database, connection: Connection) -> None:
        self._outer = outer
        self._connection = connection
        self.dialect = outer.dialect
        self.engine = outer.engine
        self.url = outer.url

    def write(self, work: Callable[[Connection], T]) -> T:
        """In a savepoint: an error that the caller can live with, such as a Conflict, leaves the rest unharmed."""
        with self._connection.begin_nested():
            return work(self._connection)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Sees what the outer transaction has written."""
        return work(self._connection)

    def glance(self, work: Callable[[Connection], T]) -> T:
        return self.read(work)

    def notify(self, connection: Connection, channel: str, payload: str = "") -> None:
        self._outer.notify(connection, channel, payload)

    def listen(self, channels: Iterable[str], wake: Wake) -> Listener:
        return self._outer.listen(channels, wake)

    def clock_offset(self, clock: Clock) -> int:
        return self._outer.clock_offset(clock)

    def close(self) -> None:
        raise RuntimeError("a transaction does not close its database")
