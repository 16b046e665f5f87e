"""The SQLite backend: one writer thread, readers on any thread, and errors.

The file is in WAL mode, so that readers see the last commit while the next one is being written, and
`synchronous=FULL`, so that a commit survives a power cut. Every write runs on one thread and takes the write lock at
its start: inside a process no thread waits for SQLite's lock, and other processes wait by `busy_timeout`. There are at
most `pool_size` readers, and one writer.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, Table, UniqueConstraint, create_engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import NullPool, QueuePool

from horarium.errors import HorariumError, InvalidDefinition
from horarium.platform.clock import Clock
from horarium.platform.database.errors import DataError, SchemaMissing, StoreUnavailable, Transient, UniqueConflict
from horarium.platform.database.rehearsal import Overlay, Recording, execute, open_overlay
from horarium.platform.database.tables import metadata
from horarium.platform.database.wakeups import Bell, NoticeHandler, Wake, WakeupListener

T = TypeVar("T")

# RETURNING and partial unique indexes as targets of an upsert.
OLDEST_VERSION = (3, 35)
_BUSY_SECONDS = 5.0
# Two processes that turn on WAL at the same time: the loser is told "busy" without waiting.
_WAL_TRIES = 50
_UNIQUE_CODES = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
)
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_READONLY: "the database file cannot be written",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_PERM: "no permission to open the database file",
    sqlite3.SQLITE_AUTH: "no permission to use the database file",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database",
    sqlite3.SQLITE_NOMEM: "out of memory",
}
_DATA = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH})
_TRY_AGAIN = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_SCHEMA})
# Statements that we wrote or used wrongly.
_OURS = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE})


class SqliteBackend:
    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, path: Path, *, pool_size: int, pool_seconds: float, durable: bool = True) -> None:
        if sqlite3.sqlite_version_info < OLDEST_VERSION:
            raise StoreUnavailable(f"SQLite {sqlite3.sqlite_version} is not supported; use 3.35 or newer")
        if not path.parent.is_dir():
            raise StoreUnavailable(f"cannot open the database file: the directory {path.parent} does not exist")
        self.url = f"sqlite:///{path}"
        self._path = path
        self._patience = _Patience()
        prepare = _prepare_writer if durable else _prepare_passing_writer
        self.engine = _engine(path, "BEGIN IMMEDIATE", prepare, self._patience, pool_size=1, pool_timeout=pool_seconds)
        self.reserve = self.engine  # a second writer would only wait for the same lock
        self._readers = _engine(
            path, "BEGIN", _prepare_reader, self._patience, pool_size=pool_size, pool_timeout=pool_seconds
        )
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="horarium-write")
        self._overlays = _listening(
            create_engine(
                URL.create("sqlite", database=str(path)),
                poolclass=NullPool,
                creator=lambda: open_overlay(path, _BUSY_SECONDS),
            ),
            "BEGIN",
            self._patience,
        )
        self._bell = Bell()

    def check(self) -> None:
        """Create a missing file with mode 600, and set WAL mode.

        SQLite would create it by the umask. Its additional files get the mode of this one.
        """
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass  # its mode is the owner's choice
        except OSError as wrong:
            raise StoreUnavailable(f"the database file cannot be created: {wrong.strerror}") from wrong
        with self.engine.connect():
            pass

    def run(self, call: Callable[[], T]) -> T:
        try:
            waiting = self._writer.submit(call)
        except RuntimeError:
            raise StoreUnavailable("the database is closed") from None
        return waiting.result()

    def reader(self) -> Connection:
        return self._readers.connect()

    def glance(self) -> Connection:
        return self.reader()

    def rehearsal(self) -> Connection:
        """Open a connection whose changes stay private and whose statements are recorded."""
        return self._overlays.connect()

    def recorded(self, connection: Connection) -> Recording:
        """Return the statements of a rehearsal."""
        return cast("Overlay", connection.connection.dbapi_connection).recording

    def execute(self, connection: Connection, recording: Recording) -> bool:
        """Execute recorded statements; False = an answer differs, and the transaction must be rolled back."""
        try:
            return execute(_raw(connection), recording)
        except sqlite3.Error as error:
            raise judge(error) or error from error

    def is_aborted(self, connection: Connection) -> bool:
        """Return whether SQLite rolled the transaction back; usually it only undoes the failed statement."""
        return not _raw(connection).in_transaction

    def after_begin(self, connection: Connection) -> None:
        """Do nothing: one writer at a time, so rows are committed in their order."""

    def before_commit(self, connection: Connection, messages: Mapping[str, str]) -> None:
        """Do nothing: other processes poll."""

    def after_commit(self, messages: Mapping[str, str]) -> None:
        self._bell.ring(messages)

    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupListener:
        return self._bell.listen(channels, wake, told)

    def clock_offset(self, clock: Clock) -> int:
        """Return 0: all users of the file share the clock of the machine."""
        return 0

    def stop_waiting(self, at: float) -> None:
        """Make transactions fail on a lock at once, from this instant of the monotonic clock on."""
        self._patience.until = at

    def close(self) -> None:
        self._writer.shutdown(wait=True)
        self._readers.dispose()
        self._overlays.dispose()
        self.engine.dispose()


def database_path(url: str) -> Path:
    """Return the path in `sqlite:///relative`, `sqlite:////absolute` or a plain path."""
    text = url.removeprefix("sqlite:///")
    if text in ("", ":memory:", "sqlite://") or text.startswith("file:") or "?" in text or "\0" in text:
        raise InvalidDefinition(
            {
                "database_url": [
                    "SQLite needs a file such as sqlite:///horarium.db; an in-memory database is not supported"
                ]
            }
        )
    return Path(text).absolute()


class _Patience:
    """The wait of a transaction for a lock of another process. `until` None = the usual timeout."""

    until: float | None = None

    def begin(self, connection: sqlite3.Connection, statement: str) -> None:
        if self.until is None:
            connection.execute(statement)
            return
        left = max(0.0, min(_BUSY_SECONDS, self.until - time.monotonic()))
        connection.execute(f"PRAGMA busy_timeout = {round(left * 1_000)}")
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            if _primary(error) in _TRY_AGAIN and time.monotonic() >= self.until:
                message = "another process has locked the database, and this one is stopping"
                raise StoreUnavailable(message, driver=str(error)) from error
            raise


def _engine(
    path: Path, begin: str, prepare: Callable[[sqlite3.Connection], None], patience: _Patience, **pool: Any
) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        max_overflow=0,
        # None: we say BEGIN ourselves; by default the driver begins late and only for some statements.
        connect_args={"isolation_level": None, "timeout": _BUSY_SECONDS, "check_same_thread": False},
        **pool,
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: sqlite3.Connection, _record: object) -> None:
        prepare(connection)

    return _listening(engine, begin, patience)


def _listening(engine: Engine, begin: str, patience: _Patience) -> Engine:
    """Begin each transaction by `begin`, and judge the errors of the driver."""

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        # Not by way of SQLAlchemy, which takes ten times as long over it as SQLite does.
        try:
            patience.begin(_raw(connection), begin)
        except sqlite3.Error as error:
            raise judge(error) or error from error

    @event.listens_for(engine, "handle_error")
    def on_error(context: ExceptionContext) -> BaseException | None:
        return judge(context.original_exception)

    return engine


def _prepare_writer(connection: sqlite3.Connection) -> None:
    for tries_left in reversed(range(_WAL_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or not tries_left:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # After a burst the log shrinks to this again.
    connection.execute("PRAGMA journal_size_limit = 67108864")


def _prepare_passing_writer(connection: sqlite3.Connection) -> None:
    _prepare_writer(connection)
    connection.execute("PRAGMA synchronous = OFF")


def _prepare_reader(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")


def _raw(connection: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.dbapi_connection)


def judge(error: BaseException) -> HorariumError | None:
    """Convert an error of the driver; None = a mistake in our own SQL, which stays as it is."""
    if isinstance(error, (OverflowError, UnicodeError)):
        return DataError(f"the database cannot store a value: {error}")
    if not isinstance(error, sqlite3.Error):
        return None
    primary, text = _primary(error), str(error)
    if primary in _TRY_AGAIN:
        return Transient("another process is writing to the database", driver=text, busy=True)
    if primary == sqlite3.SQLITE_IOERR:
        return StoreUnavailable("the disk reported an error", driver=text, outcome_known=False)
    if primary in _UNAVAILABLE:
        return StoreUnavailable(_UNAVAILABLE[primary], driver=text)
    if getattr(error, "sqlite_errorcode", None) in _UNIQUE_CODES:
        return UniqueConflict(_constraint(text.rpartition(": ")[2]))
    if primary in _DATA or "binding parameter" in text or isinstance(error, sqlite3.DataError):
        return DataError(f"the database rejected a value: {text}")
    if text.startswith("no such table"):
        return SchemaMissing(f"{text}; the database has not been migrated")
    # The driver raises errors without a code before it calls SQLite.
    return (
        None if primary is None or primary in _OURS else StoreUnavailable("the database reported an error", driver=text)
    )


def _primary(error: sqlite3.Error) -> int | None:
    """Return the primary result code: the low byte."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _constraint(columns: str) -> str:
    """Return the name of a constraint, as PostgreSQL does; SQLite names its columns."""
    return _constraint_names().get(frozenset(columns.split(", ")), columns)


@cache
def _constraint_names() -> dict[frozenset[str], str]:
    return {columns: name for table in metadata.tables.values() for columns, name in _unique_of(table)}


def _unique_of(table: Table) -> list[tuple[frozenset[str], str]]:
    def qualified(columns: Iterable[Any]) -> frozenset[str]:
        return frozenset(f"{table.name}.{column.name}" for column in columns)

    found = [(qualified(table.primary_key.columns), f"{table.name}_pkey")]
    found += [(qualified(index.columns), str(index.name)) for index in table.indexes if index.unique]
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            names = "_".join(column.name for column in constraint.columns)
            found.append((qualified(constraint.columns), f"{table.name}_{names}_key"))
    return found
