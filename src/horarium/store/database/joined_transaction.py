"""A database inside an open transaction, so that an operation can be a part of a larger one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from horarium.store.database.transactions import Database
from horarium.store.database.wrapper import DatabaseWrapper

T = TypeVar("T")


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
