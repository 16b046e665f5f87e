"""Open transactions: `write` is one transaction, `read` one snapshot, with the same errors on both databases.

    database = open_database("sqlite:///horarium.db")
    database.write(lambda connection: insert_schedule(connection, new, now=now))

The function given to `write` may run more than once, since an attempt that lost a race or its connection before COMMIT
is repeated from its start: it must have no effect outside its connection. After COMMIT has been sent nothing is
repeated; a connection that breaks then raises CommitUnknown.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Literal, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import RootTransaction
from sqlalchemy.exc import TimeoutError as PoolTimeout

from horarium.errors import InvalidDefinition
from horarium.platform.clock import Clock
from horarium.platform.database import postgres, sqlite
from horarium.platform.database.errors import CommitUnknown, Contended, StoreUnavailable, Transient, UniqueConflict
from horarium.platform.database.rehearsal import NotRehearsable, Recording
from horarium.platform.database.wakeups import NoticeHandler, Wake, WakeupListener

T = TypeVar("T")
Dialect = Literal["sqlite", "postgresql"]

_TRIES = 6
# How often a write is planned again because others changed what it had read.
_REHEARSALS = 5
# A write of so few statements may still be done at once, under the write lock.
_FEW_STATEMENTS = 500
_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0
# Shorter than the usual timeout of HTTP clients, 30 seconds.
_POOL_SECONDS = 10.0


class Backend(Protocol):
    """The differences between the two databases."""

    @property
    def dialect(self) -> Dialect: ...
    @property
    def url(self) -> str: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def reserve(self) -> Engine: ...
    def check(self) -> None: ...
    def run(self, call: Callable[[], T]) -> T: ...
    def reader(self) -> Connection: ...
    def glance(self) -> Connection: ...
    def is_aborted(self, connection: Connection) -> bool: ...
    def after_begin(self, connection: Connection) -> None: ...
    def before_commit(self, connection: Connection, messages: Mapping[str, str]) -> None: ...
    def after_commit(self, messages: Mapping[str, str]) -> None: ...
    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupListener: ...
    def clock_offset(self, clock: Clock) -> int: ...
    def stop_waiting(self, at: float) -> None: ...
    def close(self) -> None: ...


class _Inside(threading.local):
    """The messages of the transaction that this thread is in."""

    messages: dict[str, str] | None = None


class Database:
    """A database, opened by `open_database` and usable from any thread."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._inside = _Inside()
        self._observe: Callable[[float], None] = _unobserved
        self.dialect: Dialect = backend.dialect
        self.engine = backend.engine
        self.url = backend.url

    def watch_writes(self, observe: Callable[[float], None]) -> None:
        """Call `observe` with the seconds of each write transaction, from its begin to its end."""
        self._observe = observe

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction: committed on return, rolled back on an exception other than CommitUnknown."""
        return self._write(self._backend.engine, work)

    def write_reserved(self, work: Callable[[Connection], T]) -> T:
        """Write through the connection that is kept for heartbeats: they must not wait for one of the pool.

        SQLite has one writer and no such connection.
        """
        return self._write(self._backend.reserve, work)

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        """Write what takes long to compute. On SQLite the writer is held for the recorded statements alone.

        Raises Contended where what `work` has read is changed by others again and again.
        """
        if not isinstance(self._backend, sqlite.SqliteBackend):
            return self.write(work)
        self._refuse_nesting()
        recording = None
        for _ in range(_REHEARSALS):
            try:
                result, messages, recording = self._rehearsed(self._backend, work)
            except NotRehearsable:
                return self.write(work)
            if self._executed(self._backend, recording, messages):
                return result
        if recording is not None and len(recording.steps) > _FEW_STATEMENTS:
            raise Contended(
                "other writes keep changing what this request reads; split the request, or pause the schedules "
                "that it changes first"
            )
        return self.write(work)

    def preview(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` would, and write nothing. On SQLite the writer takes no part in it.

        On PostgreSQL it runs without the writers' lock: no reader of the feed waits for rows that are never committed.
        """
        if isinstance(self._backend, sqlite.SqliteBackend):
            self._refuse_nesting()
            with suppress(NotRehearsable):
                return self._rehearsed(self._backend, work)[0]
        return _taken_back(lambda tried: self._write(self._backend.engine, tried, commits=False), work)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one read-only snapshot."""
        self._refuse_nesting()
        return _patiently(lambda: self._snapshot(work))

    def glance(self, work: Callable[[Connection], T]) -> T:
        """Read by one statement without a transaction, which saves half of the round trips to PostgreSQL."""
        self._refuse_nesting()
        return _patiently(lambda: self._glance(work))

    def notify(self, connection: Connection, channel: str, payload: str = "") -> None:
        """Wake the listeners when this transaction commits; a second call for a channel adds nothing."""
        messages = self._inside.messages
        if messages is None or not connection.in_transaction():
            raise RuntimeError("notify must be called inside a write")
        messages.setdefault(channel, payload)

    def listen(self, channels: Iterable[str], wake: Wake, told: NoticeHandler | None = None) -> WakeupListener:
        """Call `wake(channel)` on a thread of the database; it must be quick. Wake-ups can be lost: poll as well.

        A message with a payload goes to `told` instead, if given.
        """
        return self._backend.listen(channels, wake, told)

    def clock_offset(self, clock: Clock) -> int:
        """Return the microseconds from `clock` to the time that all users of this database share."""
        return _patiently(lambda: self._backend.clock_offset(clock))

    def stop_waiting(self, seconds: float) -> None:
        """Bound the wait for locks of other processes: this process is stopping.

        PostgreSQL ends such waits itself.
        """
        self._backend.stop_waiting(time.monotonic() + seconds)

    def close(self) -> None:
        self._backend.close()

    def _write(self, engine: Engine, work: Callable[[Connection], T], *, commits: bool = True) -> T:
        self._refuse_nesting()
        result, messages = self._backend.run(
            lambda: _patiently(lambda: self._transaction(engine, work, commits=commits))
        )
        self._backend.after_commit(messages)
        return result

    def _transaction(
        self, engine: Engine, work: Callable[[Connection], T], *, commits: bool
    ) -> tuple[T, dict[str, str]]:
        messages: dict[str, str] = {}
        self._inside.messages = messages
        try:
            with engine.connect() as connection, self._timed(connection, commits=commits) as transaction:
                result = work(connection)
                if self._backend.is_aborted(connection):
                    raise RuntimeError("the work continued after an error that rolled back its transaction")
                if messages:
                    self._backend.before_commit(connection, messages)
                _commit(transaction)
            return result, messages
        finally:
            self._inside.messages = None

    @contextmanager
    def _timed(self, connection: Connection, *, commits: bool = True) -> Iterator[RootTransaction]:
        """Open a transaction that the caller commits: one left open is rolled back with its connection."""
        transaction, began = connection.begin(), time.monotonic()
        try:
            if commits:
                self._backend.after_begin(connection)
            yield transaction
        finally:
            self._observe(time.monotonic() - began)

    def _rehearsed(
        self, backend: sqlite.SqliteBackend, work: Callable[[Connection], T]
    ) -> tuple[T, dict[str, str], Recording]:
        def attempt() -> tuple[T, dict[str, str], Recording]:
            messages: dict[str, str] = {}
            self._inside.messages = messages
            try:
                with backend.rehearsal() as connection, connection.begin() as transaction:
                    recording = backend.recorded(connection)
                    result = work(connection)
                    transaction.rollback()
                return result, messages, recording
            finally:
                self._inside.messages = None

        return _patiently(attempt)

    def _executed(self, backend: sqlite.SqliteBackend, recording: Recording, messages: dict[str, str]) -> bool:
        def attempt() -> bool:
            with backend.engine.connect() as connection, self._timed(connection) as transaction:
                try:
                    fits = backend.execute(connection, recording)
                except UniqueConflict:  # a row that the rehearsal could not see
                    fits = False
                if fits:
                    _commit(transaction)
                return fits

        fits = backend.run(lambda: _patiently(attempt))
        if fits:
            backend.after_commit(messages)
        return fits

    def _snapshot(self, work: Callable[[Connection], T]) -> T:
        self._inside.messages = {}
        try:
            with self._backend.reader() as connection, connection.begin():
                return work(connection)
        finally:
            self._inside.messages = None

    def _glance(self, work: Callable[[Connection], T]) -> T:
        with self._backend.glance() as connection:
            return work(connection)

    def _refuse_nesting(self) -> None:
        # It would not see the writes of its own thread, or wait for itself.
        if self._inside.messages is not None:
            raise RuntimeError("nested transaction: pass the connection instead")


def open_database(
    url: str, *, pool_size: int = 5, statement_timeout_seconds: float | None = None, durable: bool = True
) -> Database:
    """Open `sqlite:///file`, a path, or `postgresql://…`, and connect once, so that a wrong URL fails here.

    `pool_size` is the maximum of open connections, in addition to one for notifications and one for heartbeats
    (PostgreSQL) or one for writes (SQLite). PostgreSQL cancels a statement after the timeout; None or 0 = no timeout.
    Without `durable`, a power failure can lose data on SQLite, for tests.
    """
    if pool_size < 1:
        raise InvalidDefinition({"pool_size": ["must be at least 1"]})
    backend: Backend
    if "://" in url and not url.startswith("sqlite:"):
        backend = postgres.PostgresBackend(
            url,
            pool_size=pool_size,
            pool_seconds=_POOL_SECONDS,
            statement_timeout_seconds=statement_timeout_seconds,
        )
    else:
        path = sqlite.database_path(url)
        backend = sqlite.SqliteBackend(path, pool_size=pool_size, pool_seconds=_POOL_SECONDS, durable=durable)
    try:
        _patiently(backend.check)
    except BaseException:
        backend.close()
        raise
    return Database(backend)


class _TakenBack(Exception):
    """Rolls back a transaction and carries its result."""

    def __init__(self, result: object) -> None:
        self.result = result


def _taken_back(write: Callable[[Callable[[Connection], None]], None], work: Callable[[Connection], T]) -> T:
    def tried(connection: Connection) -> None:
        raise _TakenBack(work(connection))

    try:
        write(tried)
    except _TakenBack as done:
        return cast("T", done.result)
    raise AssertionError("the transaction of a preview was committed")


def _unobserved(seconds: float) -> None:
    """Ignore the duration: no service observes it."""


def _commit(transaction: RootTransaction) -> None:
    try:
        transaction.commit()
    except StoreUnavailable as failed:
        if failed.outcome_known:
            raise
        raise CommitUnknown(failed.message) from failed


def _patiently(attempt: Callable[[], T]) -> T:
    for number in range(1, _TRIES):
        try:
            return _attempt(attempt)
        except Transient:
            time.sleep(_pause(number))
    return _attempt(attempt)


def _attempt(attempt: Callable[[], T]) -> T:
    try:
        return attempt()
    except PoolTimeout as crowded:
        message = f"no database connection became free within {_POOL_SECONDS:g} seconds; increase pool_size"
        raise StoreUnavailable(message, busy=True) from crowded


def _pause(number: int) -> float:
    """Return a pause that doubles each time, with jitter between half and all of it."""
    who = f"{os.getpid()}:{threading.get_ident()}:{time.monotonic_ns()}".encode()
    share = int.from_bytes(blake2b(who, digest_size=4).digest(), "big") / 2**32
    return float(min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2**number) * (0.5 + 0.5 * share))
