"""What is particular to SQLite: the file, its modes, and the ways in which it can fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection

from horarium.errors import HorariumError
from horarium.platform.database import Database, open_database
from horarium.platform.database.errors import CommitUnknown, DataError, StoreUnavailable, Transient
from horarium.platform.database.sqlite import database_path, judge

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
def path(dialect: str, tmp_path: Path) -> Path:
    return tmp_path / "file.db"


def test_writers_are_durable_and_readers_cannot_write(database: Database) -> None:
    def pragmas(connection: Connection) -> list[object]:
        wanted = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "query_only")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted]

    assert database.write(pragmas) == ["wal", 2, 1, 5000, 0]
    assert database.read(pragmas)[-1] == 1


@pytest.mark.parametrize("prefix", ["sqlite:///", ""], ids=["url", "path"])
def test_a_file_is_named_by_a_url_or_a_path(path: Path, prefix: str) -> None:
    assert database_path(f"{prefix}{path}") == path
    assert database_path(f"{prefix}relative.db") == Path("relative.db").absolute()


def test_a_missing_directory_is_named(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_database(str(path.parent / "nowhere" / "file.db"))


def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("this is a letter, not a database. " * 100)
    with pytest.raises(StoreUnavailable, match="not a SQLite database"):
        open_database(str(path))
    assert path.read_text().startswith("this is a letter")


def test_a_directory_is_no_database(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        open_database(str(path))


def test_a_full_disk_writes_nothing_and_the_database_goes_on(database: Database) -> None:
    def fill(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO installation VALUES ('small', '')")
        connection.exec_driver_sql("INSERT INTO installation VALUES ('large', ?)", ("x" * 1_000_000,))

    def limit(connection: Connection, pages: int) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    # The smallest limit that SQLite accepts is the size that the file has.
    database.write(lambda connection: limit(connection, 1))
    with pytest.raises(StoreUnavailable, match="disk is full; nothing was written"):
        database.write(fill)
    statement = "SELECT count(*) FROM installation WHERE name IN ('small', 'large')"
    assert database.read(lambda c: c.exec_driver_sql(statement).scalar()) == 0
    database.write(lambda connection: limit(connection, 1_000_000))
    database.write(fill)
    assert database.read(lambda c: c.exec_driver_sql(statement).scalar()) == 2


def test_another_process_that_holds_the_lock_is_waited_for_and_then_named(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.platform.database.transactions._TRIES", 2)
    database.write(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout = 10").all())
    other = sqlite3.connect(database_path(database_url), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another process is writing"):
        database.write(lambda connection: None)
    other.execute("ROLLBACK")
    other.close()
    assert database.write(lambda connection: "free") == "free"


def test_a_disk_that_fails_while_committing_leaves_the_outcome_unknown(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("the disk does not answer", outcome_known=False)

    monkeypatch.setattr("sqlalchemy.engine.base.Connection._commit_impl", fail)
    with pytest.raises(CommitUnknown, match="does not answer"):
        database.write(lambda connection: None)


def test_a_closed_database_says_so(database_url: str) -> None:
    database = open_database(database_url)
    database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        database.write(lambda connection: None)


def _error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("it says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_error(sqlite3.SQLITE_BUSY), Transient),
        (_error(sqlite3.SQLITE_BUSY_SNAPSHOT), Transient),
        (_error(sqlite3.SQLITE_LOCKED), Transient),
        (_error(sqlite3.SQLITE_READONLY_DBMOVED), StoreUnavailable),
        (_error(sqlite3.SQLITE_CORRUPT), StoreUnavailable),
        (_error(sqlite3.SQLITE_INTERNAL), StoreUnavailable),
        (_error(sqlite3.SQLITE_INTERRUPT), StoreUnavailable),
        (_error(sqlite3.SQLITE_NOLFS), StoreUnavailable),
        (_error(sqlite3.SQLITE_PROTOCOL), Transient),
        (_error(sqlite3.SQLITE_SCHEMA), Transient),
        (_error(99), StoreUnavailable),
        (_error(sqlite3.SQLITE_RANGE), None),
        (_error(sqlite3.SQLITE_MISUSE), None),
        (_error(sqlite3.SQLITE_CONSTRAINT_CHECK), DataError),
        (_error(sqlite3.SQLITE_TOOBIG), DataError),
        (OverflowError("too large"), DataError),
        (sqlite3.OperationalError("near SELEKT: syntax error"), None),
        (KeyError("ours"), None),
    ],
    ids=[
        "busy",
        "busy snapshot",
        "locked",
        "moved",
        "corrupt",
        "internal",
        "interrupt",
        "no large files",
        "protocol",
        "schema",
        "of a later version",
        "range",
        "misuse",
        "check",
        "too big",
        "overflow",
        "syntax",
        "no error of its",
    ],
)
def test_errors_are_told_apart_by_what_can_be_done(
    dialect: str, error: Exception, kind: type[HorariumError] | None
) -> None:
    judged = judge(error)
    assert judged is None if kind is None else type(judged) is kind


def test_a_disk_that_does_not_answer_leaves_a_commit_in_doubt(dialect: str) -> None:
    judged = judge(_error(sqlite3.SQLITE_IOERR_FSYNC))
    assert isinstance(judged, StoreUnavailable)
    assert not judged.outcome_known
