"""A planned write does what a write does, and on SQLite the writer is only taken for the recorded statements."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.features.history import entry_rows
from horarium.features.history.rows import append
from horarium.platform.database import Database, transactions
from horarium.platform.database.errors import Contended, UniqueConflict
from horarium.platform.database.tables import calendars, namespaces, schedules
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.ids import new_id

EVENT = NewEvent(1, EventType.TRIGGERED, None, None, None, {})
NAMES = sa.select(namespaces.c.namespace).order_by(namespaces.c.namespace)


def add(connection: Connection, *names: str) -> None:
    rows = [{"namespace": name, "description": "", "created_at": 0} for name in names]
    connection.execute(sa.insert(namespaces), rows)


def add_named(connection: Connection, name: str) -> None:
    add(connection, name)


def names_of(connection: Connection) -> list[str]:
    return [name for name in connection.execute(NAMES).scalars() if name != "default"]


def describe(connection: Connection, name: str, text: str) -> int:
    own = sa.update(namespaces).where(namespaces.c.namespace == name)
    return connection.execute(own.values(description=text)).rowcount


def upsert(connection: Connection, name: str, text: str) -> str:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(namespaces).values(namespace=name, description=text, created_at=0)
    changed = row.on_conflict_do_update(index_elements=["namespace"], set_={"description": row.excluded.description})
    found: str = connection.execute(changed.returning(namespaces.c.description)).scalar_one()
    return found


def described(connection: Connection) -> dict[str, str]:
    rows = connection.execute(sa.select(namespaces.c.namespace, namespaces.c.description))
    return {name: text for name, text in rows if name != "default"}


def everything(connection: Connection) -> list[Any]:
    """Each kind of change, and a read of its effect after it."""
    told: list[Any] = []
    add(connection, "a", "b", "c")
    told.append(names_of(connection))
    told.append(tuple(describe(connection, name, "2") for name in ("b", "nothing", "old")))
    told.append((upsert(connection, "old", "4"), upsert(connection, "new", "5")))
    told.append(connection.execute(sa.delete(namespaces).where(namespaces.c.namespace == "c")).rowcount)
    undone = connection.begin_nested()
    add(connection, "d")
    told.append(names_of(connection))
    undone.rollback()
    with pytest.raises(UniqueConflict), connection.begin_nested():
        add(connection, "a")
    add(connection, "e")
    told.append(described(connection))
    told.append(connection.execute(sa.select(sa.func.count()).select_from(namespaces)).scalar_one())
    return told


def test_a_planned_write_and_a_preview_do_what_a_write_does(database: Database) -> None:
    database.write(lambda connection: add(connection, "old"))
    expected = [
        ["a", "b", "c", "old"],
        (1, 0, 1),
        ("4", "5"),
        1,
        ["a", "b", "d", "new", "old"],
        {"a": "", "b": "2", "e": "", "new": "5", "old": "4"},
        6,
    ]
    assert database.preview(everything) == expected
    assert database.read(described) == {"old": ""}, "a preview writes nothing"
    assert database.write_planned(everything) == expected
    assert database.read(described) == expected[5]


def test_a_preview_raises_what_the_write_would(database: Database) -> None:
    def taken(connection: Connection) -> None:
        add(connection, "a")
        add(connection, "a")

    for way in (database.write, database.preview, database.write_planned):
        with pytest.raises(UniqueConflict, match="namespaces_pkey"):
            way(taken)
    assert database.read(names_of) == []


def test_inside_a_transaction_a_preview_takes_its_changes_back(database: Database) -> None:
    def work(connection: Connection) -> list[str]:
        joined = JoinedTransaction(database, connection)
        joined.preview(lambda inside: add(inside, "a"))
        joined.write_planned(lambda inside: add(inside, "b"))
        return names_of(connection)

    assert database.write_planned(work) == ["b"]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_readers_of_the_feed_do_not_wait_for_a_preview(
    database: Database, open_another: Callable[[], Database]
) -> None:
    other = open_another()

    def work(connection: Connection) -> int:
        add(connection, "planned")  # from here on it has a transaction id
        other.write(lambda beside: append(beside, [(new_id(), "default", [EVENT])], now=9))
        return len(other.read(lambda reader: entry_rows.onward(reader, None, limit=9))[0])

    assert database.preview(work) == 1
    assert database.read(names_of) == []


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_others_write_beside_a_plan(database: Database) -> None:
    planning, written = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        add(connection, "slow")
        planning.set()
        assert written.wait(60)

    for way in (database.preview, database.write_planned):
        planning.clear()
        written.clear()
        other = threading.Thread(target=way, args=(slow,))
        other.start()
        assert planning.wait(60)
        database.write(partial(add_named, name=f"quick-{way.__name__}"))
        written.set()
        other.join()
    assert database.read(names_of) == ["quick-preview", "quick-write_planned", "slow"]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_what_others_have_changed_is_planned_anew(database: Database) -> None:
    database.write(lambda connection: add(connection, "a"))
    plans = 0

    def work(connection: Connection) -> None:
        nonlocal plans
        plans += 1
        text = described(connection)["a"]
        if plans == 1:
            changing = threading.Thread(target=database.write, args=(lambda other: describe(other, "a", "theirs"),))
            changing.start()
            changing.join()
        describe(connection, "a", f"{text} and ours")

    database.write_planned(work)
    assert (plans, database.read(described)) == (2, {"a": "theirs and ours"})


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("many", [False, True], ids=["few statements", "many statements"])
def test_a_large_plan_that_others_always_overtake_is_refused(
    database: Database, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one is then done at once, under the write lock."""
    monkeypatch.setattr(transactions, "_FEW_STATEMENTS", 0 if many else 500)
    database.write(lambda connection: add(connection, "a"))
    changes = iter(range(100))

    def work(connection: Connection) -> None:
        text = described(connection)["a"]
        if threading.current_thread() is threading.main_thread():
            change = str(next(changes))
            changing = threading.Thread(target=database.write, args=(lambda other: describe(other, "a", change),))
            changing.start()
            changing.join()
        describe(connection, "a", f"{text} and ours")

    if many:
        with pytest.raises(Contended):
            database.write_planned(work)
    else:
        database.write_planned(work)
    assert database.read(described) == {"a": "4" if many else "4 and ours"}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_statement_that_no_plan_can_show_is_written_at_once(database: Database) -> None:
    def work(connection: Connection) -> list[str]:
        connection.exec_driver_sql(
            "WITH named (name) AS (SELECT 'a') "
            "INSERT INTO namespaces (namespace, description, created_at) SELECT name, '', 0 FROM named"
        )
        return names_of(connection)

    assert database.preview(work) == ["a"]
    assert database.read(names_of) == []
    assert database.write_planned(work) == ["a"]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_plan_cannot_change_the_file(database: Database) -> None:
    def work(connection: Connection) -> None:
        for table in (schedules, calendars):
            connection.execute(sa.delete(table))
        raw = connection.connection.dbapi_connection
        assert raw is not None
        with pytest.raises(Exception, match="readonly"):
            raw.plain().execute("DELETE FROM main.namespaces")

    database.preview(work)
    assert database.read(lambda connection: connection.execute(NAMES).scalars().all())


def test_a_message_of_a_planned_write_wakes_those_who_listen(database: Database) -> None:
    heard = threading.Event()
    listener = database.listen(["horarium_due"], lambda channel: heard.set())
    try:
        database.preview(lambda connection: database.notify(connection, "horarium_due"))
        assert not heard.is_set()
        database.write_planned(lambda connection: database.notify(connection, "horarium_due"))
        assert heard.wait(60)
    finally:
        listener.close()


def test_each_write_transaction_is_measured(database: Database) -> None:
    seconds: list[float] = []
    database.watch_writes(seconds.append)
    database.read(names_of)
    database.write(lambda connection: add(connection, "a"))
    database.write_planned(lambda connection: add(connection, "b"))
    assert len(seconds) == 2
    assert min(seconds) >= 0
