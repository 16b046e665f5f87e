"""A database inside an open transaction: all or nothing, and errors that one can live with."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Connection

from horarium.features.tenants import rows as tenant_rows
from horarium.platform.database import Database
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.wrapper import JoinedTransaction


def add(name: str) -> Any:
    return lambda connection: tenant_rows.insert_namespace(connection, name, "", now=1)


def names(database: Database) -> list[str]:
    return [row.namespace for row in database.read(tenant_rows.all_namespaces)]


def test_what_is_written_inside_is_committed_with_the_whole(database: Database) -> None:
    def work(connection: Connection) -> list[str]:
        inside = JoinedTransaction(database, connection)
        inside.write(add("a"))
        inside.write(add("b"))
        return names(inside)

    assert database.write(work) == ["a", "b", "default"] == names(database)


def test_what_is_written_inside_is_undone_with_the_whole(database: Database) -> None:
    def work(connection: Connection) -> None:
        JoinedTransaction(database, connection).write(add("a"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(work)
    assert names(database) == ["default"]


def test_a_conflict_inside_undoes_its_own_part_only(database: Database) -> None:
    def twice(connection: Connection) -> None:
        tenant_rows.insert_namespace(connection, "b", "", now=1)
        tenant_rows.insert_namespace(connection, "default", "", now=1)

    def work(connection: Connection) -> None:
        inside = JoinedTransaction(database, connection)
        inside.write(add("a"))
        with pytest.raises(UniqueConflict):
            inside.write(twice)
        inside.write(add("c"))

    database.write(work)
    assert names(database) == ["a", "c", "default"]


def test_a_message_is_sent_when_the_whole_is_committed(database: Database) -> None:
    heard = threading.Event()
    listener = database.listen(["channel"], lambda _channel: heard.set())

    def work(connection: Connection) -> None:
        inside = JoinedTransaction(database, connection)
        inside.write(lambda own: inside.notify(own, "channel"))
        assert not heard.wait(0.05)

    try:
        database.write(work)
        assert heard.wait(60)
    finally:
        listener.close()


def test_it_is_the_same_database_but_for_closing_it(database: Database) -> None:
    def work(connection: Connection) -> None:
        inside = JoinedTransaction(database, connection)
        assert (inside.dialect, inside.url, inside.engine) == (database.dialect, database.url, database.engine)
        with pytest.raises(RuntimeError, match="close the database where it was opened"):
            inside.close()

    database.write(work)
