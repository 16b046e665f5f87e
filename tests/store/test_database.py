"""Transactions: all or nothing, repeated where that is safe, and errors that mean the same on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from horarium.errors import InvalidDefinition
from horarium.instant import HOUR, SECOND
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database, sqlite, transactions
from horarium.platform.database.errors import DataError, StoreUnavailable, Transient, UniqueConflict
from horarium.platform.database.partitions import named_for_all
from horarium.platform.database.tables import metadata
from horarium.platform.ids import new_id

OpenAnother = Callable[[], Database]


def put(connection: Connection, name: str, value: Any = "") -> None:
    connection.execute(metadata.tables["installation"].insert().values(name=name, value=value))


def names(database: Database) -> set[str]:
    rows = database.read(lambda c: c.exec_driver_sql("SELECT name FROM installation").scalars().all())
    return set(rows) - {"tzdata"}  # what a new database says of itself


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_PAUSE_SECONDS", 0.0)


# ── all or nothing ───────────────────────────────────────────────────────────────────────────────────


def test_a_write_returns_what_its_work_returns_and_is_committed(database: Database, open_another: OpenAnother) -> None:
    def work(connection: Connection) -> str:
        put(connection, "a")
        return "done"

    assert database.write(work) == "done"
    assert names(open_another()) == {"a"}


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    def work(connection: Connection) -> None:
        put(connection, "a")
        raise LookupError("changed my mind")

    with pytest.raises(LookupError, match="changed my mind"):
        database.write(work)
    assert names(database) == set()
    database.write(lambda connection: put(connection, "b"))
    assert names(database) == {"b"}


def test_a_read_is_one_snapshot(database: Database) -> None:
    def work(connection: Connection) -> tuple[Any, Any]:
        statement = "SELECT count(*) FROM installation"
        before = connection.exec_driver_sql(statement).scalar()
        thread = threading.Thread(target=lambda: database.write(lambda c: put(c, "meanwhile")))
        thread.start()
        thread.join()
        return before, connection.exec_driver_sql(statement).scalar()

    before, after = database.read(work)
    assert before == after
    assert names(database) == {"meanwhile"}


def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(StoreUnavailable):
        database.read(lambda connection: put(connection, "a"))
    assert names(database) == set()


@pytest.mark.parametrize("outer", ["write", "read"])
@pytest.mark.parametrize("inner", ["write", "read"])
def test_a_transaction_inside_a_transaction_is_refused(database: Database, outer: str, inner: str) -> None:
    with pytest.raises(RuntimeError, match="nested transaction"):
        getattr(database, outer)(lambda _: getattr(database, inner)(lambda _: None))
    database.write(lambda connection: put(connection, "still usable"))


def test_writers_on_many_threads_take_turns(database: Database, open_another: OpenAnother) -> None:
    """Two handles on the same database, as two processes would have them."""
    database.write(lambda connection: put(connection, "count", "0"))
    lock = " FOR UPDATE" if database.dialect == "postgresql" else ""

    def add(connection: Connection) -> None:
        value = connection.exec_driver_sql(f"SELECT value FROM installation WHERE name = 'count'{lock}").scalar_one()
        connection.exec_driver_sql(f"UPDATE installation SET value = '{int(value) + 1}' WHERE name = 'count'")

    other = open_another()
    threads = [
        threading.Thread(target=lambda each=each: [each.write(add) for _ in range(10)])
        for each in (database, other)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statement = "SELECT value FROM installation WHERE name = 'count'"
    assert database.read(lambda c: c.exec_driver_sql(statement).scalar()) == "80"


# ── trying again ─────────────────────────────────────────────────────────────────────────────────────


def test_an_attempt_that_lost_a_race_is_repeated_from_its_start(database: Database, impatient: None) -> None:
    attempts: list[int] = []

    def work(connection: Connection) -> None:
        attempts.append(1)
        put(connection, f"attempt {len(attempts)}")
        if len(attempts) < 3:
            raise Transient("lost")

    database.write(work)
    assert names(database) == {"attempt 3"}


@pytest.mark.parametrize("way", ["write", "read"])
def test_patience_ends(database: Database, impatient: None, way: str) -> None:
    attempts: list[int] = []

    def work(_: Connection) -> None:
        attempts.append(1)
        raise Transient("lost again")

    with pytest.raises(StoreUnavailable, match="lost again"):
        getattr(database, way)(work)
    assert len(attempts) == transactions._TRIES


def test_what_is_nobodys_race_is_not_repeated(database: Database) -> None:
    attempts: list[int] = []

    def work(_: Connection) -> None:
        attempts.append(1)
        raise StoreUnavailable("down")

    with pytest.raises(StoreUnavailable):
        database.write(work)
    assert len(attempts) == 1


def test_pauses_grow_and_differ_and_are_bounded() -> None:
    for number, longest in ((1, 0.04), (2, 0.08), (5, 0.64), (20, 1.0)):
        drawn = {transactions._pause(number) for _ in range(50)}
        assert len(drawn) > 10
        assert longest / 2 <= min(drawn) <= max(drawn) <= longest


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"created_at": 2**63}, id="integer out of range"),
        pytest.param({"created_at": 2**5000}, id="huge integer"),
        pytest.param({"description": "half \ud800"}, id="half a surrogate pair"),
        pytest.param({"description": None}, id="null"),
        pytest.param({"description": object()}, id="no type of the database"),
    ],
)
def test_a_value_that_cannot_be_kept_is_the_rows_own_fault(database: Database, values: dict[str, Any]) -> None:
    row = {"namespace": "n", "description": "", "created_at": 0} | values
    with pytest.raises(DataError):
        database.write(lambda c: c.execute(metadata.tables["namespaces"].insert().values(**row)))


def test_an_error_can_be_caught_inside_a_savepoint_and_the_rest_goes_on(database: Database) -> None:
    def work(connection: Connection) -> str:
        put(connection, "a")
        with pytest.raises(UniqueConflict) as taken, connection.begin_nested():
            put(connection, "a")
        put(connection, "b")
        return taken.value.constraint

    assert database.write(work) == "installation_pkey"
    assert names(database) == {"a", "b"}


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_both_databases_call_a_unique_constraint_by_the_same_name(database: Database) -> None:
    statement = "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE 'CREATE UNIQUE%%'"
    # One in a partition is told under the name that its table has for it.
    named = {named_for_all(name) for name in database.read(lambda c: c.exec_driver_sql(statement).scalars().all())}
    others = {"alembic_version_pkc", "schema_revision_pkc", "runs_archive_pkey"}
    assert set(sqlite._constraint_names().values()) == named - others


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("table", "constraint"),
    [("plannings", "plannings_pkey"), ("counters", "counters_pkey"), ("checkpoints", "checkpoints_pkey")],
)
def test_sqlite_tells_which_constraint_is_taken(database: Database, table: str, constraint: str) -> None:
    values: dict[str, Any] = {"BLOB": new_id(), "TEXT": "x"}
    row = {c.name: values.get(str(c.type), 0) for c in metadata.tables[table].columns}

    def work(connection: Connection) -> None:
        for _ in range(2):
            connection.execute(metadata.tables[table].insert().values(**row))

    with pytest.raises(UniqueConflict) as refused:
        database.write(work)
    assert refused.value.constraint == constraint


def test_a_mistake_in_our_own_sql_is_not_disguised(database: Database) -> None:
    with pytest.raises(Exception, match="syntax") as raised:
        database.write(lambda connection: connection.exec_driver_sql("SELEKT 1"))
    assert not isinstance(raised.value, (DataError, StoreUnavailable))


# ── waking ───────────────────────────────────────────────────────────────────────────────────────────


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.called = threading.Condition()

    def __call__(self, channel: str) -> None:
        with self.called:
            self.heard.append(channel)
            self.called.notify_all()

    def wait_for(self, *channels: str, seconds: float = 60.0) -> bool:
        with self.called:
            return self.called.wait_for(lambda: set(channels) <= set(self.heard), seconds)


def test_a_commit_wakes_those_who_listen_once_for_each_channel(database: Database) -> None:
    ear, deaf = Ear(), Ear()
    listeners = [database.listen(["runs", "due"], ear), database.listen(["other"], deaf)]

    def work(connection: Connection) -> None:
        database.notify(connection, "runs", "1")
        database.notify(connection, "runs", "2")
        database.notify(connection, "due")

    database.write(work)
    assert ear.wait_for("runs", "due")
    for listener in listeners:
        listener.close()
    assert sorted(ear.heard) == ["due", "runs"]
    assert deaf.heard == []


def test_what_is_said_on_a_channel_is_told_to_those_who_want_to_know(database: Database) -> None:
    ear, told, heard = Ear(), Ear(), Ear()
    listeners = [
        database.listen(["runs", "due"], ear, lambda channel, said: told(f"{channel}: {said}")),
        database.listen(["runs"], heard),
    ]

    def work(connection: Connection) -> None:
        database.notify(connection, "runs", "7")
        database.notify(connection, "due")

    database.write(work)
    database.write(lambda connection: database.notify(connection, "runs", "8"))
    assert told.wait_for("runs: 7", "runs: 8")
    assert ear.wait_for("due")
    assert heard.wait_for("runs")
    for listener in listeners:
        listener.close()
    assert ear.heard == ["due"]


def test_what_is_rolled_back_wakes_nobody(database: Database) -> None:
    ear = Ear()
    listener = database.listen(["runs"], ear)

    def work(connection: Connection) -> None:
        database.notify(connection, "runs")
        raise LookupError

    with pytest.raises(LookupError):
        database.write(work)
    assert not ear.wait_for("runs", seconds=0.1)
    listener.close()


def test_a_closed_listener_hears_nothing_and_may_be_closed_again(database: Database) -> None:
    ear, awake = Ear(), Ear()
    closed, open_one = database.listen(["runs"], ear), database.listen(["runs"], awake)
    closed.close()
    closed.close()
    database.write(lambda connection: database.notify(connection, "runs"))
    assert awake.wait_for("runs")
    assert ear.heard == []
    open_one.close()


def test_a_listener_that_fails_disturbs_nobody(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    heard = threading.Event()

    def broken(_: str) -> None:
        heard.set()
        raise ZeroDivisionError

    ear = Ear()
    listeners = [database.listen(["runs"], broken), database.listen(["runs"], ear)]
    for _ in range(2):
        database.write(lambda connection: database.notify(connection, "runs"))
    assert ear.wait_for("runs")
    assert heard.wait(60)
    for listener in listeners:
        listener.close()
    assert "Listener on runs failed" in caplog.text


def test_notify_outside_a_write_is_a_mistake(database: Database) -> None:
    with database.engine.connect() as connection, pytest.raises(RuntimeError, match="inside a write"):
        database.notify(connection, "runs")


# ── opening, asking the time, closing ────────────────────────────────────────────────────────────────


class SlowClock(SystemClock):
    """An hour behind."""

    def now(self) -> int:
        return super().now() - HOUR


def test_the_offset_corrects_a_wrong_clock_where_the_database_has_one(database: Database) -> None:
    wanted = HOUR if database.dialect == "postgresql" else 0
    assert abs(database.clock_offset(SlowClock()) - wanted) < SECOND
    assert abs(database.clock_offset(SystemClock())) < SECOND


@pytest.mark.parametrize(
    "url",
    [
        ":memory:",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///file.db?mode=ro",
        "file:horarium.db",
        "nul\0.db",
        "mysql://localhost/horarium",
        "postgresql://host:notaport/x",
        "://",
    ],
)
def test_an_address_that_is_none_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(InvalidDefinition, match="database_url"):
        open_database(url)


def test_a_pool_needs_a_connection(empty_url: str) -> None:
    with pytest.raises(InvalidDefinition, match="pool_size"):
        open_database(empty_url, pool_size=0)


def test_the_pool_is_as_large_as_it_says_and_the_others_wait(database_url: str) -> None:
    database = open_database(database_url, pool_size=2)
    lock, both = threading.Lock(), threading.Barrier(2)
    now_open, most_open, done = 0, 0, 0

    def look(connection: Connection) -> None:
        nonlocal now_open, most_open, done
        connection.exec_driver_sql("SELECT 1")
        with lock:
            now_open += 1
            most_open = max(most_open, now_open)
        both.wait(10)  # two are in here at once, and never a third
        with lock:
            now_open -= 1
            done += 1

    threads = [threading.Thread(target=database.read, args=[look]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    assert (most_open, done) == (2, 8)


def test_a_pool_that_stays_used_up_is_unavailable_and_says_which_setting_helps(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_POOL_SECONDS", 0.05)
    database = open_database(database_url, pool_size=1)
    taken, over = threading.Event(), threading.Event()

    def hold(_connection: Connection) -> None:
        taken.set()
        over.wait(30)

    holder = threading.Thread(target=database.read, args=[hold])
    holder.start()
    taken.wait(30)
    try:
        with pytest.raises(StoreUnavailable, match=r"no database connection became free .* increase pool_size"):
            database.read(lambda connection: None)
    finally:
        over.set()
        holder.join()
    assert database.read(lambda connection: "free") == "free"
    database.close()
