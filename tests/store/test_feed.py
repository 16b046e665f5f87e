"""The feed: nothing appears behind a reader, and a cursor is good on whatever server the rows are restored."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, make_url
from store.feeds import eventually, read_feed

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.features.history import entry_rows
from horarium.features.history.entry_rows import START, Epoch, FeedCursor, Lock, Running, place
from horarium.features.history.rows import append as append_events
from horarium.instant import SECOND
from horarium.platform.database import Database, open_database
from horarium.platform.database.postgres import WRITERS
from horarium.platform.database.schema import migrate
from horarium.platform.database.tables import feed_epochs
from horarium.platform.database.tables import history as history_table
from horarium.platform.ids import new_id

# Another server whose transaction ids were far ahead of ours.
SHIFT = 10_000_000_000
only_postgres = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)


def event(sequence: int) -> NewEvent:
    return NewEvent(sequence, EventType.TRIGGERED, None, None, None, {"n": sequence})


def append(database: Database, uid: bytes, *events: NewEvent, namespace: str = "default") -> None:
    database.write(lambda c: append_events(c, [(uid, namespace, events)], now=9))


def test_the_feed_goes_on_where_a_reader_left_it(database: Database) -> None:
    uid = new_id()
    append(database, uid, event(1), event(2))
    append(database, new_id(), event(7), namespace="other")
    append(database, uid, event(3))
    assert read_feed(database, None, awaits=4)[0] == [1, 2, 7, 3]
    first, cursor = read_feed(database, "default", limit=1, awaits=1)
    second, cursor = read_feed(database, "default", cursor, awaits=2)
    assert (first, second) == ([1], [2, 3])
    assert read_feed(database, "default", cursor) == ([], cursor)
    append(database, uid, event(4))
    assert read_feed(database, "default", cursor, awaits=1)[0] == [4]


@only_postgres
def test_a_row_that_commits_late_is_not_passed_by(database: Database, open_another: Callable[[], Database]) -> None:
    """The lower number belongs to the younger transaction, which commits last."""
    reader = open_another()
    with database.engine.connect() as old, database.engine.connect() as young:
        _begin_as_writer(old)
        _begin_as_writer(young)
        append_events(young, [(new_id(), "default", [event(1)])], now=9)
        append_events(old, [(new_id(), "default", [event(2)])], now=9)
        old.commit()
        seen, cursor = read_feed(reader, "default", awaits=1)
        young.commit()
        seen_later, _ = read_feed(reader, "default", cursor, awaits=1)
    assert (seen, seen_later) == ([2], [1])


def _begin_as_writer(connection: Connection) -> None:
    """As `Database.write` does, with an id at once."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({WRITERS})")
    connection.exec_driver_sql("SELECT pg_current_xact_id()")


@only_postgres
def test_the_feed_stops_at_the_oldest_transaction_of_ours(database: Database) -> None:
    with database.engine.connect() as slow:
        _begin_as_writer(slow)
        append(database, new_id(), event(1))
        assert database.read(lambda c: entry_rows.onward(c, None, limit=9)) == ([], START)
        slow.rollback()
    assert read_feed(database, None, awaits=1)[0] == [1]


FOREIGN = {
    "has an id": ("SELECT pg_current_xact_id()",),
    "has written a table of its own": ("CREATE TABLE theirs (id int)", "INSERT INTO theirs VALUES (1)"),
    "is prepared": ("CREATE TABLE theirs (id int)", "PREPARE TRANSACTION '{name}'"),
    "is prepared and changed a row of ours": ("UPDATE installation SET value = value", "PREPARE TRANSACTION '{name}'"),
    "reads our tables": ("SELECT pg_current_xact_id()", "SELECT * FROM history"),
    "has locked a whole table of ours": ("LOCK TABLE leases IN SHARE MODE", "SELECT pg_current_xact_id()"),
    "holds the lock in another key space": ("SELECT pg_advisory_xact_lock(1, 2)", "SELECT pg_current_xact_id()"),
}


@only_postgres
@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_transaction_delays_no_reader(database: Database, statements: tuple[str, ...]) -> None:
    name = f"foreign-{uuid4()}"
    with _foreign(database) as foreign:
        _skip_without_prepared(foreign, statements)
        for statement in statements:
            foreign.execute(statement.format(name=name))
        try:
            append(database, new_id(), event(1))
            rows, cursor = read_feed(database, None, awaits=1)
            assert rows == [1]
            eventually(lambda: database.read(entry_rows.end).transaction_id >= cursor.transaction_id)
            eventually(lambda: database.read(lambda c: entry_rows.lag(c, 5 * SECOND)) == entry_rows.Lag())
            append(database, new_id(), event(2))
            assert read_feed(database, None, cursor, awaits=1)[0] == [2]
        finally:
            if "PREPARE" in statements[-1]:
                foreign.execute(f"ROLLBACK PREPARED '{name}'")


def _skip_without_prepared(foreign: psycopg.Connection, statements: tuple[str, ...]) -> None:
    most = foreign.execute("SHOW max_prepared_transactions").fetchone()
    if "PREPARE" in statements[-1] and most == ("0",):
        pytest.skip("the server that was named prepares no transactions")


@contextmanager
def _foreign(database: Database) -> Iterator[psycopg.Connection]:
    """A session of another program; what it prepared is rolled back outside of a transaction."""
    url = make_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("BEGIN")
        yield connection


@only_postgres
def test_who_begins_at_the_end_in_a_write_is_told_what_that_write_tells(database: Database) -> None:
    def work(connection: Connection) -> FeedCursor:
        append_events(connection, [(new_id(), "default", [event(1)])], now=9)
        begin = entry_rows.end(connection)
        append_events(connection, [(new_id(), "default", [event(2)])], now=9)
        return begin

    begin = database.write(work)
    eventually(lambda: 2 in read_feed(database, None, begin)[0])


@only_postgres
@pytest.mark.parametrize("seed", range(3))
def test_readers_miss_nothing_of_writers_that_commit_in_any_order(
    database: Database, open_another: Callable[[], Database], seed: int
) -> None:
    """Beside a foreign transaction that never ends, and one writer that rolls back each time."""
    writers, rounds = 4, 12
    expected = writers * rounds * 2

    def write(number: int) -> None:
        draw, mine = random.Random(seed * 100 + number), open_another()
        for turn in range(rounds):

            def work(connection: Connection, turn: int = turn) -> None:
                for part in range(2):
                    append_events(connection, [(uids[number], "default", [event(turn * 2 + part + 1)])], now=9)
                    time.sleep(draw.random() * 0.01)
                if number == writers:
                    raise Undone

            with suppress(Undone):
                mine.write(work)

    uids = [new_id() for _ in range(writers + 1)]
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers + 1)]
    with _foreign(database) as foreign:
        foreign.execute("SELECT pg_current_xact_id()")
        for thread in threads:
            thread.start()
        seen: list[tuple[bytes | None, int | None]] = []
        cursor, over = START, False
        while not over:
            over = not any(thread.is_alive() for thread in threads)
            rows, cursor = database.read(lambda c, at=cursor: entry_rows.onward(c, None, after=at, limit=7))
            seen += [(row.event.schedule_uid, row.event.sequence) for row in rows]
            over = over and not rows
    assert len(seen) == len(set(seen)) == expected
    for uid in uids[:writers]:
        assert [number for each, number in seen if each == uid] == list(range(1, rounds * 2 + 1))


class Undone(Exception):
    pass


LOCKS = {
    "nothing is known of it": ([], []),
    "it has its own lock alone": ([Lock("3/1", 7, True, 100, False)], [100]),
    "it is prepared": ([Lock("-1/100", None, True, 100, False)], [100]),
    "it is a writer": ([Lock("3/1", 7, True, 100, False), Lock("3/1", 7, False, None, True)], []),
    "it has locked a row of ours": ([Lock("3/1", 7, True, 100, False), Lock("3/1", 7, False, None, False)], []),
    "a writer has no id yet": ([Lock("3/1", 7, True, 100, False), Lock("4/9", 8, False, None, True)], [100]),
    "the ids of the server have begun anew": ([Lock("3/1", 7, True, 100, False)], [2**32 + 100]),
}


@pytest.mark.parametrize(("locks", "foreign"), LOCKS.values(), ids=LOCKS)
def test_only_what_is_proved_foreign_is_not_waited_for(locks: list[Lock], foreign: list[int]) -> None:
    ids = [2**32 + 100 if foreign == [2**32 + 100] else 100]
    assert entry_rows.without_our_lock(ids, locks) == foreign
    expected = 2**33 if foreign else ids[0]
    assert entry_rows.stop_at(Running(2**33, ids), foreign) == expected


# ── epochs ───────────────────────────────────────────────────────────────────────────────────────────

EPOCHS = (Epoch("1.aa", 0), Epoch("2.bb", 100), Epoch("3.cc", 250))


@pytest.mark.parametrize(
    ("cursor", "number", "behind"),
    [
        (START, 0, True),
        (FeedCursor(7, 70), 0, True),
        (FeedCursor(7, 70, "1.aa"), 0, True),
        (FeedCursor(7, 170, "2.bb"), 1, True),
        (FeedCursor(1, 300, "3.cc"), 2, True),
        (FeedCursor(7, 70, "1.zz"), 0, False),
        (FeedCursor(7, 170, "2.zz"), 1, False),
        (FeedCursor(7, 99_999, "2.zz"), 2, False),
        (FeedCursor(7, 99_999, "3.zz"), 2, False),
    ],
    ids=lambda each: str(each) if isinstance(each, FeedCursor) else None,
)
def test_a_cursor_goes_on_where_it_was_or_at_the_beginning_of_what_took_its_place(
    cursor: FeedCursor, number: int, behind: bool
) -> None:
    assert place(EPOCHS, cursor) == (number, cursor if behind else None)


def test_where_no_epoch_is_known_a_cursor_is_as_good_as_ever() -> None:
    assert place((Epoch("", 0),), FeedCursor(7, 70)) == (0, FeedCursor(7, 70))


@pytest.fixture
def restored(empty_url: str) -> Iterator[Database]:
    """A migrated database on a server that is to be another one."""
    opened = open_database(empty_url)
    migrate(opened)
    yield opened
    opened.close()


def dump(source: Database, target: Database, *, server: str = "aaaaaaaa") -> None:
    """As `pg_dump` and `pg_restore` do: the rows as they are, and the next number. The source was far ahead of us."""
    rows = source.read(lambda c: c.execute(sa.select(history_table)).mappings().all())
    epochs = source.read(lambda c: c.execute(sa.select(feed_epochs)).mappings().all())
    moved = [{**row, "transaction_id": row["transaction_id"] + SHIFT} for row in rows]

    def work(connection: Connection) -> None:
        connection.execute(sa.delete(feed_epochs))
        connection.execute(sa.insert(feed_epochs), [{**epoch, "server": server} for epoch in epochs])
        connection.execute(sa.delete(history_table))
        connection.execute(sa.insert(history_table), moved)
        connection.exec_driver_sql("SELECT setval('history_feed_id_seq', (SELECT max(feed_id) FROM history))")

    target.write(work)
    target.engine.dispose()  # whoever comes now connects anew


def of_source(cursor: FeedCursor, *, server: str = "aaaaaaaa") -> FeedCursor:
    return replace(cursor, transaction_id=cursor.transaction_id + SHIFT, epoch=f"1.{server}")


@only_postgres
def test_after_a_restore_on_another_server_a_reader_goes_on_without_loss(
    database: Database, restored: Database
) -> None:
    uid = new_id()
    append(database, uid, event(1), event(2))
    append(database, uid, event(3))
    first, cursor = read_feed(database, "default", limit=2, awaits=2)
    read_feed(database, "default", awaits=3)
    dump(database, restored)
    append(restored, uid, event(4))
    append(restored, uid, event(5))
    rest, behind = read_feed(restored, "default", of_source(cursor), awaits=3)
    assert (first, rest) == ([1, 2], [3, 4, 5])
    append(restored, uid, event(6))
    assert read_feed(restored, "default", behind, awaits=1)[0] == [6]
    assert read_feed(restored, None, awaits=6)[0] == [1, 2, 3, 4, 5, 6]


@only_postgres
def test_a_cursor_from_before_there_were_epochs_goes_on_too(database: Database, restored: Database) -> None:
    uid = new_id()
    append(database, uid, event(1), event(2))
    _, cursor = read_feed(database, "default", limit=1, awaits=1)
    dump(database, restored)
    append(restored, uid, event(3))
    assert read_feed(restored, "default", replace(of_source(cursor), epoch=""), awaits=2)[0] == [2, 3]


@only_postgres
def test_what_had_committed_late_on_the_old_server_is_not_passed_by(database: Database, restored: Database) -> None:
    """The lower number belongs to the younger transaction, which the reader has not seen."""
    with database.engine.connect() as old, database.engine.connect() as young:
        _begin_as_writer(old)
        _begin_as_writer(young)
        append_events(young, [(new_id(), "default", [event(1)])], now=9)
        append_events(old, [(new_id(), "default", [event(2)])], now=9)
        old.commit()
        seen, cursor = read_feed(database, "default", awaits=1)
        young.commit()
    dump(database, restored)
    assert (seen, read_feed(restored, "default", of_source(cursor), awaits=1)[0]) == ([2], [1])


@only_postgres
def test_who_wants_only_what_is_to_come_gets_it_after_a_restore(database: Database, restored: Database) -> None:
    uid = new_id()
    append(database, uid, event(1))
    dump(database, restored)
    end = restored.read(entry_rows.end)
    append(restored, uid, event(2))
    assert read_feed(restored, "default", end, awaits=1)[0] == [2]


@only_postgres
def test_backwards_the_feed_leads_through_all_servers(database: Database, restored: Database) -> None:
    uid = new_id()
    append(database, uid, *map(event, range(1, 5)))
    dump(database, restored)
    append(restored, uid, *map(event, range(5, 8)))
    read_feed(restored, "default", awaits=7)
    seen: list[int] = []
    before: FeedCursor | None = None
    for _ in range(4):
        page, before = restored.read(lambda c, at=before: entry_rows.newest(c, "default", before=at, limit=2))
        seen += [row.event.sequence for row in page]
    assert (seen, before) == ([7, 6, 5, 4, 3, 2, 1], None)


@only_postgres
def test_a_reader_of_a_server_whose_rows_were_lost_misses_nothing_of_what_took_their_place(
    database: Database, restored: Database
) -> None:
    """One dump, restored twice: the second server uses the numbers of the first again."""
    uid = new_id()
    append(database, uid, event(1), event(2))
    dump(database, restored)
    lost = FeedCursor(SHIFT * 9, 4, "2.cccccccc")  # had read two rows that nobody has any more
    append(restored, uid, *map(event, range(30, 35)))
    assert read_feed(restored, "default", lost, awaits=5)[0] == [30, 31, 32, 33, 34]


@only_postgres
def test_a_server_that_goes_back_to_a_moment_in_its_past_is_another_one(
    database: Database, open_another: Callable[[], Database]
) -> None:
    """Then its transaction ids are used again; here its timeline was another one."""
    uid = new_id()
    append(database, uid, event(1))
    _, cursor = read_feed(database, "default", awaits=1)
    future = replace(
        cursor, transaction_id=cursor.transaction_id + SHIFT, feed_id=cursor.feed_id + 9, epoch="1.aaaaaaaa"
    )
    database.write(lambda c: c.execute(sa.update(feed_epochs).values(server="aaaaaaaa")))
    again = open_another()
    append(again, uid, event(2))
    assert read_feed(again, "default", future, awaits=1)[0] == [2]


@only_postgres
def test_many_connections_notice_a_new_server_once(database: Database, open_another: Callable[[], Database]) -> None:
    append(database, new_id(), event(1))
    database.write(lambda c: c.execute(sa.update(feed_epochs).values(server="aaaaaaaa")))
    threads = [threading.Thread(target=open_another) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    epochs = database.read(lambda c: c.execute(sa.select(feed_epochs).order_by(feed_epochs.c.epoch)).all())
    assert [(row.epoch, row.server == "aaaaaaaa") for row in epochs] == [(1, True), (2, False)]
    assert epochs[1].first_feed_id == 2


@only_postgres
def test_a_server_that_does_not_tell_who_it_is_has_one_epoch(database: Database, database_url: str) -> None:
    silent = "CREATE OR REPLACE FUNCTION horarium_server() RETURNS text LANGUAGE sql AS $$ SELECT '' $$"
    database.write(lambda c: c.exec_driver_sql(silent))
    database.write(lambda c: c.execute(sa.delete(feed_epochs)))
    again = open_database(database_url)
    append(again, new_id(), event(1))
    sequences, cursor = read_feed(again, "default", awaits=1)
    assert (sequences, cursor.epoch) == ([1], "")
    assert again.read(lambda c: c.execute(sa.select(feed_epochs)).all()) == []
    again.close()
