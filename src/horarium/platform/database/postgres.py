"""The PostgreSQL backend: connections, wake-ups and errors.

Writes are READ COMMITTED, since every write locks what it changes; a read is one REPEATABLE READ snapshot. A process
has at most `pool_size` connections, one more that listens and one that is reserved for its heartbeat. A thread waits
for a free connection, which is safe because no thread holds two.

With `?pgbouncer=true` nothing is used that a transaction pooler cannot carry: no prepared statements, no LISTEN, no
start-up options (set `statement_timeout` on the role instead), and no state that a session would keep from one
transaction to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from typing import Any, Literal, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.string import BytesBinaryDumper
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from horarium.errors import HorariumError, InvalidDefinition
from horarium.platform.clock import Clock
from horarium.platform.database.errors import DataError, SchemaMissing, StoreUnavailable, Transient, UniqueConflict
from horarium.platform.database.partitions import named_for_all
from horarium.platform.database.wakeups import Bell, NoticeHandler, PostgresListener, Wake, WakeupListener

T = TypeVar("T")

OLDEST_VERSION = 14
# Shared by all write transactions: readers of the feed wait for its holders alone. The number is arbitrary.
WRITERS = 7_201_900_002
_TAKE_LOCK = f"SELECT pg_advisory_xact_lock_shared({WRITERS})"
# Parameters of the URL that must not be shown.
SECRET_PARAMETERS = ("password", "sslpassword")
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_CONNECT_SECONDS = 10
# A peer that vanished without a word is noticed within a minute, whether we wait for it (keepalives: 30 + 3 × 10 s)
# or it for us (bytes that nobody has acknowledged).
_SOCKET = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_CLOCK_SAMPLES = 5
_REST_SECONDS = 1.0

# PostgreSQL manual, appendix A. Classes are the first two characters. What stands in none of these lists
# (53, 57, 58, XX, F0, HV and whatever a later version adds) is trouble of the database, not of a row.
_TRY_AGAIN = frozenset({"40001", "40P01", "55P03", "55006", "53300"})
_GONE = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "40003"})
_DATA_CLASSES = frozenset({"22", "23", "44", "54"})
# Statements, cursors, savepoints and transactions that we use wrongly.
_OUR_CLASSES = frozenset({"03", "07", "21", "24", "25", "26", "2D", "34", "3B", "42"})
_CANCELLED = "57014"
_UNAVAILABLE = {
    "53100": "the disk of the database is full; nothing was written",
    "53200": "the database is out of memory",
    "25006": "the database is read-only; connect to the primary server",
    "42501": "the database role lacks a privilege",
    _CANCELLED: "the statement exceeded the timeout of the database",
}
_ELSE = "the database reported an error"
_LOST = "the connection to the database was lost"
# The error of libpq for more than 65,535 parameters; its class is that of a server that does not respond.
_TOO_MANY_PARAMETERS = "number of parameters must be between"
# The error of PgBouncer for start-up options; a retry would not help.
_POOLED = "unsupported startup parameter"
_SAY_SO = "the connection pooler rejects start-up options; for PgBouncer, add ?pgbouncer=true to the database URL"


class PostgresBackend:
    dialect: Literal["postgresql"] = "postgresql"

    def __init__(
        self, url: str, *, pool_size: int, pool_seconds: float, statement_timeout_seconds: float | None
    ) -> None:
        parsed = _parse(url)
        pooled = str(parsed.query.get("pgbouncer", "false")).lower() in ("true", "1", "yes")
        self.url = parsed.difference_update_query(SECRET_PARAMETERS).render_as_string(hide_password=True)
        self._arguments = _connect_arguments(parsed, pooled, statement_timeout_seconds)
        self._bell = Bell() if pooled else None
        address = parsed.set(drivername="postgresql+psycopg", query={})
        make = partial(_engine, address, self._connect, _notice_server if pooled else _ping, pool_timeout=pool_seconds)
        self.engine = make(pool_size=pool_size)
        self.reserve = make(pool_size=1)

    def check(self) -> None:
        with self.engine.connect() as connection:
            number = _raw(connection).info.server_version
        if number // 10_000 < OLDEST_VERSION:
            raise StoreUnavailable(f"PostgreSQL {number // 10_000} is not supported; use {OLDEST_VERSION} or newer")

    def run(self, call: Callable[[], T]) -> T:
        return call()

    def reader(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def glance(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def is_aborted(self, connection: Connection) -> bool:
        """Return whether an error has aborted the transaction: COMMIT would roll it back without an error."""
        return _raw(connection).info.transaction_status == TransactionStatus.INERROR

    def after_begin(self, connection: Connection) -> None:
        """Take the writers' lock before the transaction gets an id: see `history/horizon.py`."""
        connection.exec_driver_sql(_TAKE_LOCK)

    def before_commit(self, connection: Connection, messages: Mapping[str, str]) -> None:
        if self._bell is None:
            for channel, payload in messages.items():
                connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (channel, payload))

    def after_commit(self, messages: Mapping[str, str]) -> None:
        if self._bell is not None:
            self._bell.ring(messages)

    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupListener:
        if self._bell is not None:
            return self._bell.listen(channels, wake, told)
        return PostgresListener(lambda: self._connect(autocommit=True), channels, wake, told)

    def clock_offset(self, clock: Clock) -> int:
        """Take the fastest of a few samples: its error is at most half its duration."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            return min(_clock_sample(connection, clock) for _ in range(_CLOCK_SAMPLES))[1]

    def stop_waiting(self, at: float) -> None:
        """Do nothing: the server bounds each statement, and closing a connection ends its waits."""

    def close(self) -> None:
        """Close every connection: one that is in use, by a probe for example, as soon as it is given back."""
        for engine in (self.reserve, self.engine):
            event.listen(engine, "checkin", lambda _connection, record: record.invalidate())
            engine.dispose()

    def _connect(self, *, autocommit: bool = False) -> psycopg.Connection:
        connection = psycopg.connect(autocommit=True, **self._arguments)
        try:
            _notice_server(connection)
        except BaseException:
            connection.close()
            raise
        connection.autocommit = autocommit
        # Of the two that psycopg has for this type COPY would take the one of DB-API's `Binary`, which is slow.
        connection.adapters.register_dumper(bytes, BytesBinaryDumper)
        return connection


def _engine(
    address: URL,
    connect: Callable[[], psycopg.Connection],
    ping: Callable[[psycopg.Connection], None],
    **pool: Any,
) -> Engine:
    engine = create_engine(address, creator=connect, isolation_level="READ COMMITTED", max_overflow=0, **pool)
    _ping_after_rest(engine, ping)

    @event.listens_for(engine, "handle_error")
    def on_error(context: ExceptionContext) -> BaseException | None:
        return judge(context.original_exception, is_disconnect=context.is_disconnect)

    return engine


def _notice_server(connection: psycopg.Connection) -> None:
    """Register the server before the first write: see `history/feed.py`."""
    # A database without tables, or one that is read only, refuses.
    with suppress(psycopg.ProgrammingError, psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("SELECT horarium_notice_server()")


def _ping(connection: psycopg.Connection) -> None:
    connection.execute("")


def _ping_after_rest(engine: Engine, ping: Callable[[psycopg.Connection], None]) -> None:
    """Test a connection that was idle for a second before it is used again.

    If a connection breaks within that second, the statement fails, the pool is emptied and the transaction is repeated.
    A connection to a pooler may lead to another server by now, which the test notices as well.
    """

    @event.listens_for(engine, "checkin")
    def on_return(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["returned"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def on_use(connection: psycopg.Connection, record: ConnectionPoolEntry, _proxy: object) -> None:
        returned = record.info.get("returned")
        if returned is None or time.monotonic() - returned < _REST_SECONDS:
            return
        connection.autocommit = True
        try:
            ping(connection)
        except psycopg.Error as dead:
            raise DisconnectionError from dead  # the pool opens another
        connection.autocommit = False


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text may hold a password: it is not repeated.
        raise InvalidDefinition({"database_url": ["must be a URL such as postgresql://user@host/database"]}) from None
    if parsed.drivername not in _SCHEMES:
        raise InvalidDefinition({"database_url": [f"unknown database {parsed.drivername}; use sqlite or postgresql"]})
    return parsed


def _connect_arguments(url: URL, pooled: bool, statement_timeout_seconds: float | None) -> dict[str, Any]:
    """Return the arguments of libpq; the query of the URL overrides the rest."""
    named = {"host": url.host, "port": url.port, "user": url.username, "password": url.password, "dbname": url.database}
    arguments: dict[str, Any] = {
        "application_name": "horarium",
        "connect_timeout": _CONNECT_SECONDS,
        **_SOCKET,
        **{name: value for name, value in named.items() if value is not None},
        **{name: value for name, value in url.query.items() if name != "pgbouncer"},
    }
    if pooled:
        arguments["prepare_threshold"] = None
    else:
        # Said also where there is none: a pooler refuses any options, before it could mix up prepared statements.
        most = ceil((statement_timeout_seconds or 0) * 1000)
        given = arguments.get("options", "")  # of two that say the same the server takes the last
        arguments["options"] = f"-c statement_timeout={most} {given}".strip()
    return arguments


def _raw(connection: Connection) -> psycopg.Connection:
    return cast("psycopg.Connection", connection.connection.dbapi_connection)


def copy_rows(
    connection: Connection,
    statement: str,
    kinds: Sequence[str],
    rows: Iterable[tuple[object, ...]],
    constants: tuple[object, ...] = (),
) -> None:
    """Insert rows by COPY, which SQLAlchemy does not support; errors are those of other statements."""
    raw = _raw(connection)
    try:
        with raw.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(kinds)
            for row in rows:
                copy.write_row(row + constants)
    except (psycopg.Error, OverflowError, UnicodeError) as error:
        meant = judge(error, is_disconnect=raw.closed)
        if meant is None:
            raise
        raise meant from error


def _clock_sample(connection: Connection, clock: Clock) -> tuple[int, int]:
    before = clock.now()
    theirs = connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").scalar_one()
    after = clock.now()
    return abs(after - before), int(theirs) - (before + after) // 2


def judge(error: BaseException, *, is_disconnect: bool) -> HorariumError | None:
    """Convert an error of the driver; None = a mistake in our own SQL, which stays as it is."""
    if isinstance(error, (OverflowError, UnicodeError)):
        return DataError(f"the database cannot store a value: {error}")
    if not isinstance(error, psycopg.Error):
        return None
    text = str(error).strip()
    if error.sqlstate is not None:
        return _judge_state(error, error.sqlstate, text, is_disconnect=is_disconnect)
    if is_disconnect:
        return Transient(_LOST, driver=text, outcome_known=False)
    return _judge_driver(error, text)


def _judge_state(error: psycopg.Error, state: str, text: str, *, is_disconnect: bool) -> HorariumError | None:
    """Convert an error of the server, by its SQLSTATE."""
    if state == "23505":
        return UniqueConflict(named_for_all(error.diag.constraint_name or "") or text)
    if state == "42P01":
        return SchemaMissing(f"{text}; the database has not been migrated")
    if state in _TRY_AGAIN or _was_partitioned_meanwhile(error, state):
        return Transient("the transaction conflicts with others; try again", driver=text, busy=True)
    if state in _UNAVAILABLE:
        return StoreUnavailable(_UNAVAILABLE[state], driver=text, busy=state == _CANCELLED)
    if is_disconnect or state in _GONE or state.startswith("08"):
        return Transient(_LOST, driver=text, outcome_known=False)
    if state[:2] in _DATA_CLASSES:
        return DataError(f"the database rejected a value: {text}")
    return None if state[:2] in _OUR_CLASSES else StoreUnavailable(_ELSE, driver=f"{text} (SQLSTATE {state})")


def _was_partitioned_meanwhile(error: psycopg.Error, state: str) -> bool:
    """Return whether a partition was attached while the row was inserted; a violated check has a name."""
    return state == "23514" and error.diag.table_name is not None and error.diag.constraint_name is None


def _judge_driver(error: psycopg.Error, text: str) -> HorariumError | None:
    """Convert an error without a SQLSTATE: found before a statement was sent, or no valid answer."""
    if isinstance(error, psycopg.DataError) or "cannot adapt type" in text:
        return DataError(f"the database cannot store a value: {text}")
    if _TOO_MANY_PARAMETERS in text:
        return None
    if _POOLED in text:
        return StoreUnavailable(_SAY_SO, driver=text)
    if isinstance(error, psycopg.OperationalError):
        return Transient("the database does not answer", driver=text, outcome_known=False)
    if isinstance(error, (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.InterfaceError)):
        return None
    return StoreUnavailable(_ELSE, driver=text, outcome_known=False)
