"""What is particular to PostgreSQL: connections that break, locks that meet, poolers in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from horarium.errors import HorariumError
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database, postgres
from horarium.platform.database.errors import (
    CommitUnknown,
    DataError,
    SchemaMissing,
    StoreUnavailable,
    Transient,
    UniqueConflict,
    is_fault_of_a_row,
)
from horarium.platform.database.postgres import copy_rows, judge

pytestmark = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)


def terminate(database_url: str, connection: Connection) -> None:
    """As an administrator, a failover or a restart would."""
    pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def add(connection: Connection, name: str) -> None:
    connection.exec_driver_sql("INSERT INTO installation VALUES (%s, '')", (name,))


def count(database: Database, name: str) -> int:
    statement = "SELECT count(*) FROM installation WHERE name LIKE %s"
    return int(database.read(lambda c: c.exec_driver_sql(statement, (name,)).scalar_one()))


def test_a_connection_that_breaks_before_the_commit_costs_a_second_attempt(
    database: Database, database_url: str
) -> None:
    attempts: list[int] = []

    def work(connection: Connection) -> None:
        attempts.append(1)
        add(connection, f"attempt {len(attempts)}")
        if len(attempts) == 1:
            terminate(database_url, connection)
        add(connection, "end")

    database.write(work)
    assert len(attempts) == 2
    assert (count(database, "attempt 1"), count(database, "attempt 2"), count(database, "end")) == (0, 1, 1)


def test_a_connection_that_breaks_in_the_commit_is_not_repeated(database: Database, database_url: str) -> None:
    attempts: list[int] = []

    def work(connection: Connection) -> None:
        attempts.append(1)
        add(connection, "a")
        terminate(database_url, connection)

    with pytest.raises(CommitUnknown):
        database.write(work)
    assert len(attempts) == 1
    database.write(lambda connection: add(connection, "b"))  # the pool has found another connection


def test_a_read_survives_a_broken_connection(database: Database, database_url: str) -> None:
    attempts: list[int] = []

    def work(connection: Connection) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            terminate(database_url, connection)
        return int(connection.exec_driver_sql("SELECT 7").scalar_one())

    assert database.read(work) == 7
    assert len(attempts) == 2


def test_an_error_of_the_commit_itself_is_known(database: Database) -> None:
    deferred = "CREATE TABLE later (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    database.write(lambda c: c.exec_driver_sql(deferred))
    with pytest.raises(UniqueConflict) as refused:
        database.write(lambda c: c.exec_driver_sql("INSERT INTO later VALUES (1), (1)"))
    assert refused.value.constraint == "later_id_key"


def test_two_that_wait_for_each_other_both_get_through(database: Database) -> None:
    for name in ("left", "right"):
        database.write(lambda c, name=name: add(c, name))
    both_have_one = threading.Barrier(2)
    attempts: list[str] = []

    def cross(first: str, second: str) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            attempts.append(first)
            update = "UPDATE installation SET value = value || 'x' WHERE name = %s"
            connection.exec_driver_sql(update, (first,))
            if attempts.count(first) == 1:
                both_have_one.wait(60)
            connection.exec_driver_sql(update, (second,))

        return work

    pairs = (("left", "right"), ("right", "left"))
    threads = [threading.Thread(target=database.write, args=[cross(*pair)]) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = database.read(
        lambda c: c.exec_driver_sql("SELECT value FROM installation WHERE name IN ('left', 'right')").scalars().all()
    )
    assert values == ["xx", "xx"]
    assert len(attempts) >= 3


def test_an_error_that_the_work_swallowed_cannot_pass_for_a_commit(database: Database) -> None:
    def work(connection: Connection) -> None:
        add(connection, "lost")
        with pytest.raises(UniqueConflict):
            add(connection, "tzdata")

    with pytest.raises(RuntimeError, match="rolled back its transaction"):
        database.write(work)
    assert count(database, "lost") == 0


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("INSERT INTO installation VALUES ('a', %s)", ("nul \0",)),
        ("INSERT INTO schedule_attributes VALUES ('u', 'n', 'k', 'a', %s)", ("".join(map(chr, range(256, 9000))),)),
    ],
    ids=["NUL in text", "too long for an index"],
)
def test_what_only_postgresql_cannot_keep_is_the_rows_fault_too(
    database: Database, statement: str, values: tuple[str]
) -> None:
    with pytest.raises(DataError):
        database.write(lambda c: c.exec_driver_sql(statement, values))


def test_a_value_that_cannot_be_copied_is_the_rows_fault_too(database: Database) -> None:
    statement = "COPY counters (kind, owner, day, value) FROM STDIN (FORMAT binary)"
    kinds = ["text", "text", "int4", "int8"]
    with pytest.raises(DataError):
        database.write(lambda c: copy_rows(c, statement, kinds, [("runs", "a", 0, 2**63)]))
    with pytest.raises(DataError):
        database.write(lambda c: copy_rows(c, statement, kinds, [("runs", "nul \0", 0, 1)]))


def test_a_listener_finds_its_way_back_and_wakes_everybody(database: Database, database_url: str) -> None:
    heard: list[str] = []
    woken = threading.Event()

    def wake(channel: str) -> None:
        heard.append(channel)
        if set(heard) >= {"due", "runs"}:
            woken.set()

    listener = database.listen(["runs", "due"], wake)
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
    assert woken.wait(60)
    heard.clear()
    woken.clear()

    def notify_both(connection: Connection) -> None:
        database.notify(connection, "due")
        database.notify(connection, "runs")

    database.write(notify_both)
    assert woken.wait(60)
    listener.close()


def test_a_listener_that_is_just_awake_can_be_closed(database: Database) -> None:
    """It closes what it is woken by when it ends, which must not come before the waking."""
    awake, may_end = threading.Event(), threading.Event()

    def wake(_channel: str) -> None:
        awake.set()
        may_end.wait(60)

    listener: Any = database.listen(["runs"], wake)
    database.write(lambda c: database.notify(c, "runs"))
    assert awake.wait(60)

    class SlowAlarm:
        def send(self, data: bytes) -> None:
            may_end.set()
            if listener._closing.is_set():
                listener._thread.join(60)
            alarm.send(data)

        def close(self) -> None:
            alarm.close()

    alarm, listener._alarm = listener._alarm, SlowAlarm()
    listener.close()
    assert not listener._thread.is_alive()


def test_another_process_is_woken_too(database: Database, open_another: Callable[[], Database]) -> None:
    woken = threading.Event()
    listener = open_another().listen(["runs"], lambda _: woken.set())
    database.write(lambda c: database.notify(c, "runs"))
    assert woken.wait(60)
    listener.close()


def test_behind_a_pgbouncer_nothing_is_used_that_it_cannot_carry(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    database = open_database(f"{database_url}{mark}pgbouncer=true", statement_timeout_seconds=1)

    def facts(connection: Connection) -> tuple[object, object]:
        raw: Any = connection.connection.dbapi_connection
        return raw.prepare_threshold, connection.exec_driver_sql("SHOW statement_timeout").scalar()

    assert database.read(facts) == (None, "0")
    heard: list[str] = []
    listener = database.listen(["runs"], heard.append)
    database.write(lambda c: database.notify(c, "runs"))
    listener.close()
    assert heard == ["runs"]
    listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'"
    assert database.read(lambda c: c.exec_driver_sql(listening).scalar()) == 0
    database.close()


def test_a_statement_that_takes_too_long_is_stopped(database_url: str) -> None:
    database = open_database(database_url, statement_timeout_seconds=0.05)
    with pytest.raises(StoreUnavailable, match="exceeded the timeout of the database"):
        database.read(lambda c: c.exec_driver_sql("SELECT pg_sleep(5)"))
    database.close()


def _shown(database: Database, name: str) -> object:
    return database.read(lambda connection: connection.exec_driver_sql(f"SHOW {name}").scalar())


@pytest.mark.parametrize(("seconds", "shown"), [(None, "0"), (0, "0"), (7, "7s"), (60.0001, "60001ms")])
def test_the_timeout_of_statements_is_the_one_that_was_asked_for(
    database_url: str, seconds: float | None, shown: str
) -> None:
    database = open_database(database_url, statement_timeout_seconds=seconds)
    assert _shown(database, "statement_timeout") == shown
    database.close()


def test_what_the_url_says_of_a_timeout_wins(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    given = f"{database_url}{mark}options=-c%20statement_timeout%3D9s&tcp_user_timeout=5000"
    database = open_database(given, statement_timeout_seconds=7)
    assert _shown(database, "statement_timeout") == "9s"
    assert _parameters(database)["tcp_user_timeout"] == "5000"
    database.close()


def test_a_peer_that_vanished_is_noticed(database: Database) -> None:
    """Linux gives up after a quarter of an hour if nobody says otherwise, and without keepalives never."""
    parameters = _parameters(database)
    wanted = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    assert [parameters.get(name) for name in wanted] == ["30", "10", "3", "30000"]


def _parameters(database: Database) -> dict[str, str]:
    def look(connection: Connection) -> dict[str, str]:
        raw: object = connection.connection.dbapi_connection
        assert isinstance(raw, psycopg.Connection)
        return raw.info.get_parameters()

    return database.read(look)


def test_we_say_who_we_are_unless_the_url_does(database: Database, database_url: str) -> None:
    statement = "SHOW application_name"
    assert database.read(lambda c: c.exec_driver_sql(statement).scalar()) == "horarium"
    mark = "&" if "?" in database_url else "?"
    other = open_database(f"{database_url}{mark}application_name=ticker-7")
    assert other.read(lambda c: c.exec_driver_sql(statement).scalar()) == "ticker-7"
    other.close()


def test_an_old_server_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST_VERSION", 99)
    with pytest.raises(StoreUnavailable, match="99 or newer"):
        open_database(database_url)


def test_a_server_that_is_not_there_is_unavailable_and_the_password_stays_secret(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.platform.database.transactions._PAUSE_SECONDS", 0.0)
    with pytest.raises(StoreUnavailable) as raised:
        open_database("postgres://me:hunter2@127.0.0.1:1/nothing")
    assert "hunter2" not in str(raised.value)


def test_the_shown_url_hides_the_password(dialect: str) -> None:
    backend = postgres.PostgresBackend(
        "postgresql://me:hunter2@db/x", pool_size=1, pool_seconds=1, statement_timeout_seconds=None
    )
    assert backend.url == "postgresql://me:***@db/x"
    assert "hunter2" not in repr(backend.engine)


def _failed(sqlstate: str | None, kind: type[psycopg.Error] = psycopg.OperationalError) -> psycopg.Error:
    error = kind("it says")
    error.sqlstate = sqlstate
    return error


# PostgreSQL manual, appendix A: what a value in a row can bring about.
_OF_A_VALUE = {"22", "23", "44", "54"}


def test_a_row_is_blamed_for_its_values_and_for_nothing_else(dialect: str) -> None:
    classes = [each for each in vars(psycopg.errors).values() if isinstance(each, type)]
    states = {each.sqlstate for each in classes if issubclass(each, psycopg.Error) and each.sqlstate} | {"99999"}
    assert len(states) > 200
    blamed = {state for state in states if is_fault_of_a_row(judge(_failed(state), is_disconnect=False) or OSError())}
    assert {state for state in states if state[:2] in _OF_A_VALUE} == blamed


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("08006", Transient),
        ("22003", DataError),
        ("23502", DataError),
        ("23505", UniqueConflict),
        ("40001", Transient),
        ("42501", StoreUnavailable),
        ("42601", None),
        ("42P01", SchemaMissing),
        ("25P02", None),
        ("53100", StoreUnavailable),
        ("53200", StoreUnavailable),
        ("53300", Transient),
        ("54000", DataError),
        ("55000", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("57P01", Transient),
        ("58030", StoreUnavailable),
        ("58P01", StoreUnavailable),
        ("F0001", StoreUnavailable),
        ("HV000", StoreUnavailable),
        ("P0001", StoreUnavailable),
        ("XX000", StoreUnavailable),
        ("XX001", StoreUnavailable),
        ("99999", StoreUnavailable),
    ],
)
def test_every_sqlstate_has_a_meaning(dialect: str, sqlstate: str, kind: type[HorariumError] | None) -> None:
    judged = judge(_failed(sqlstate), is_disconnect=False)
    assert judged is None if kind is None else type(judged) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.DataError("NUL"), DataError),
        (psycopg.OperationalError("connection refused"), Transient),
        (psycopg.OperationalError("number of parameters must be between 0 and 65535"), None),
        (psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed"), None),
        (psycopg.InterfaceError("the cursor is closed"), None),
        (psycopg.InternalError("got an unexpected status from the server"), StoreUnavailable),
        (OverflowError("too large"), DataError),
        (KeyError("ours"), None),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else str(each)[:24],
)
def test_what_the_driver_finds_has_a_meaning_too(
    dialect: str, error: Exception, kind: type[HorariumError] | None
) -> None:
    judged = judge(error, is_disconnect=False)
    assert judged is None if kind is None else type(judged) is kind


def test_a_disk_that_fails_under_a_copy_is_the_databases_trouble(database: Database) -> None:
    fail = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE USING ERRCODE = '58030'; END$$"
    database.write(lambda c: c.exec_driver_sql(fail))
    trigger = "CREATE TRIGGER fails BEFORE INSERT ON counters FOR EACH ROW EXECUTE FUNCTION fail()"
    database.write(lambda c: c.exec_driver_sql(trigger))
    statement = "COPY counters (kind, owner, day, value) FROM STDIN (FORMAT binary)"
    with pytest.raises(StoreUnavailable, match="58030"):
        database.write(lambda c: copy_rows(c, statement, ["text", "text", "int4", "int8"], [("runs", "a", 0, 1)]))


@pytest.mark.parametrize(
    ("sqlstate", "known"),
    [("40001", True), ("40P01", True), ("55P03", True), ("57P01", False), ("08006", False), (None, False)],
)
def test_it_is_known_which_failed_commits_may_have_happened(dialect: str, sqlstate: str | None, known: bool) -> None:
    judged = judge(_failed(sqlstate), is_disconnect=False)
    assert isinstance(judged, Transient)
    assert judged.outcome_known is known


def test_the_clock_is_asked_on_a_warm_connection(database: Database) -> None:
    assert abs(database.clock_offset(SystemClock())) < 100_000


def test_a_connection_that_is_in_use_at_the_close_is_closed_when_it_is_given_back(
    open_another: Callable[[], Database],
) -> None:
    closing = open_another()
    with closing.engine.connect() as connection:
        plain: Any = connection.connection.dbapi_connection
        closing.close()
    assert plain.closed
