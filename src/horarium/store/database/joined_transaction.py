"""A database inside a transaction that is already open: whoever works with it takes part in that transaction.

So an operation, which opens its own transaction everywhere else, can be made one part of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from horarium.store.database.transactions import Database
from horarium.store.database.wrapper import DatabaseWrapper

T = TypeVar("T")


class JoinedTransaction(DatabaseWrapper):
    """Good until the outer transaction ends, on the thread that has it."""

    def __init__(self, outer: Database, connection: Connection) -> None:
        super().__init__(outer)
        self._connection = connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """In a savepoint: an error that the caller can live with, such as a Conflict, leaves the rest unharmed."""
        with self._connection.begin_nested():
            return work(self._connection)

    def write_reserved(self, work: Callable[[Connection], T]) -> T:
        return self.write(work)

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        """Do as `write`: the outer transaction is planned already."""
        return self.write(work)

    def preview(self, work: Callable[[Connection], T]) -> T:
        """Take the savepoint back in the end."""
        savepoint = self._connection.begin_nested()
        try:
            return work(self._connection)
        finally:
            savepoint.rollback()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Sees what the outer transaction has written."""
        return work(self._connection)

    def glance(self, work: Callable[[Connection], T]) -> T:
        return self.read(work)
