"""Which tables a database has, which code may use them, and whether every process knows what is new in them.

Two tables of one row say it. `schema_revision` holds the revision that the tables are at. `alembic_version` holds the
oldest code that may use them, by the newest revision which that code knows: it is what code from before this rule
compares with its own, so that code goes on wherever it can, and is refused where it cannot. Of a database that such
code has migrated, `alembic_version` says both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from horarium.decision.process_state import GONE_AFTER_SECONDS, silent_seconds
from horarium.instant import SECOND, Instant
from horarium.store import installation
from horarium.store.database import Database
from horarium.store.database.grants import grant_as_before
from horarium.store.processes import process_rows

REVISION_TABLE = "schema_revision"
_OLDEST_CODE_TABLE = "alembic_version"
_LOOK_SECONDS = 10.0
_MAKE = "CREATE TABLE {table} (version_num VARCHAR(32) NOT NULL, CONSTRAINT {table}_pkc PRIMARY KEY (version_num))"


class Fit(StrEnum):
    """How the tables of a database suit the code that looks at them."""

    NO_TABLES = "no_tables"
    TOO_OLD = "too_old"  # a migration is needed first
    OLDER = "older"  # all works, but for what the newer tables bring
    EXACT = "exact"
    NEWER = "newer"  # made by newer code, and good for this one
    TOO_NEW = "too_new"


UP_TO_DATE = frozenset({Fit.EXACT, Fit.NEWER})
# The code runs on these.
USABLE = UP_TO_DATE | {Fit.OLDER}


@dataclass(frozen=True, slots=True)
class SchemaState:
    """`oldest_code` is the newest revision that the oldest code knows which may use these tables."""

    revision: str
    oldest_code: str


def judge(state: SchemaState | None, *, oldest: str, head: str) -> Fit:
    """For code whose newest revision is `head`, and that works on tables from `oldest` on."""
    if state is None:
        return Fit.NO_TABLES
    if _number(state.oldest_code) > _number(head):
        return Fit.TOO_NEW
    if state.revision == head:
        return Fit.EXACT
    if _number(state.revision) > _number(head):
        return Fit.NEWER
    return Fit.OLDER if _number(state.revision) >= _number(oldest) else Fit.TOO_OLD


def read_state(connection: Connection) -> SchemaState | None:
    """None = there are no tables of ours."""
    oldest_code = _read(connection, _OLDEST_CODE_TABLE)
    if oldest_code is None:
        return None
    return SchemaState(_read(connection, REVISION_TABLE) or oldest_code, oldest_code)


def begin(connection: Connection, revision: str) -> None:
    """Before a migration: the revision gets its table, where code from before kept it elsewhere."""
    if _read(connection, REVISION_TABLE) is None:
        _write(connection, REVISION_TABLE, revision)
        if connection.dialect.name == "postgresql":
            grant_as_before(connection, _OLDEST_CODE_TABLE, REVISION_TABLE)


def set_oldest_code(connection: Connection, revision: str) -> None:
    _write(connection, _OLDEST_CODE_TABLE, revision)


# ── what is there ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Seen:
    revision: str
    at: float


_seen: WeakKeyDictionary[Engine, _Seen] = WeakKeyDictionary()


def has(where: Database | Connection, revision: str) -> bool:
    """Whether the tables are at this revision, or at a later one.

    Tables never go back while a process runs, so a yes is remembered; after a no the database is asked again every
    ten seconds at most.
    """
    seen, now = _seen.get(where.engine), monotonic()
    if seen is None or (_number(seen.revision) < _number(revision) and now - seen.at >= _LOOK_SECONDS):
        state = where.read(read_state) if isinstance(where, Database) else read_state(where)
        seen = _Seen("0" if state is None else state.revision, now)
        _seen[where.engine] = seen
    return _number(seen.revision) >= _number(revision)


def look_again() -> None:
    """After a migration: the next question is put to the database."""
    _seen.clear()


# ── who knows it ─────────────────────────────────────────────────────────────────────────────────────


def everybody_knows(connection: Connection, revision: str, now: Instant) -> bool:
    """Whether the code of every process that is alive knows the revision; older code says nothing in its heartbeat."""
    alive = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS]
    return all(_number(row.process.about.schema) >= _number(revision) for row in alive)


def may_use(connection: Connection, revision: str, now: Instant) -> bool:
    """Whether rows may go where only code that knows the revision looks for them; asked in a write, each time anew.

    The first time that all processes know it, older code is shut out, and the answer is no for half a minute more: by
    then a process that had just started has beaten, and everybody has seen the new tables. A server without an engine
    that knows 0018 at most does not beat at all; once it is shut out it says that it is not ready, and a proxy leaves
    it alone.
    """
    if not has(connection, revision) or not everybody_knows(connection, revision, now):
        return False
    table = sa.table(_OLDEST_CODE_TABLE, sa.column("version_num"))
    shut = sa.update(table).where(table.c.version_num < revision).values(version_num=revision)
    if connection.execute(shut).rowcount:
        installation.set_older_shut_out_at(connection, now)
        return False
    return now - installation.older_shut_out_at(connection) >= GONE_AFTER_SECONDS * SECOND


def _number(revision: object) -> int:
    """Revisions are counted; what is none comes before all of them."""
    return int(revision) if isinstance(revision, str) and revision.isascii() and revision.isdigit() else 0


def _read(connection: Connection, table: str) -> str | None:
    if not sa.inspect(connection).has_table(table):
        return None
    statement = sa.select(sa.column("version_num", sa.Text)).select_from(sa.table(table))
    return connection.execute(statement).scalar_one_or_none()


def _write(connection: Connection, table: str, revision: str) -> None:
    if not sa.inspect(connection).has_table(table):
        connection.exec_driver_sql(_MAKE.format(table=table))
    target = sa.table(table, sa.column("version_num"))
    if connection.execute(sa.update(target).values(version_num=revision)).rowcount == 0:
        connection.execute(sa.insert(target).values(version_num=revision))
