"""The revision of a schema, the code that may use it, and whether all processes know what is new in it.

Two tables of one row hold this. `schema_revision` has the revision of the schema. `alembic_version` has the oldest code
that may use it, as the newest revision which that code knows: code compares it with its own newest revision, so older
code continues where it can and is refused where it cannot.
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
from horarium.store.processes import process_rows

REVISION_TABLE = "schema_revision"
_OLDEST_CODE_TABLE = "alembic_version"
_LOOK_SECONDS = 10.0
_MAKE = "CREATE TABLE {table} (version_num VARCHAR(32) NOT NULL, CONSTRAINT {table}_pkc PRIMARY KEY (version_num))"


class Fit(StrEnum):
    """Fits of a database schema to the code that uses it."""

    NO_TABLES = "no_tables"
    FOREIGN = "foreign"  # of another program, or damaged
    UNSUPPORTED = "unsupported"  # from before the first revision: no migration exists
    TOO_OLD = "too_old"  # a migration is needed first
    OLDER = "older"  # usable, without what newer revisions bring
    EXACT = "exact"
    NEWER = "newer"  # migrated by newer code, and usable
    TOO_NEW = "too_new"


UP_TO_DATE = frozenset({Fit.EXACT, Fit.NEWER})
# Code runs on these.
USABLE = UP_TO_DATE | {Fit.OLDER}


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The state of a schema. `oldest_code` is the newest revision that the oldest code which may use it knows."""

    revision: str
    oldest_code: str


def judge(state: SchemaState | None, *, first: str, oldest: str, head: str) -> Fit:
    """Judge for code whose newest revision is `head`, that can use `oldest`, and that can migrate from `first`."""
    if state is None:
        return Fit.NO_TABLES
    if not _number(state.revision):
        return Fit.FOREIGN
    if _number(state.revision) < _number(first):
        return Fit.UNSUPPORTED
    if _number(state.oldest_code) > _number(head):
        return Fit.TOO_NEW
    if state.revision == head:
        return Fit.EXACT
    if _number(state.revision) > _number(head):
        return Fit.NEWER
    return Fit.OLDER if _number(state.revision) >= _number(oldest) else Fit.TOO_OLD


def read_state(connection: Connection) -> SchemaState | None:
    """Return the state of the schema; None = the database has none."""
    oldest_code = _read(connection, _OLDEST_CODE_TABLE)
    if oldest_code is None:
        return None
    return SchemaState(_read(connection, REVISION_TABLE) or oldest_code, oldest_code)


def set_oldest_code(connection: Connection, revision: str) -> None:
    _write(connection, _OLDEST_CODE_TABLE, revision)


# ── schema ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Seen:
    revision: str
    at: float


_seen: WeakKeyDictionary[Engine, _Seen] = WeakKeyDictionary()


def has(where: Database | Connection, revision: str) -> bool:
    """Return whether the schema is at this revision or a later one.

    A schema never goes back while a process runs, so `True` is cached; after `False` the database is read again, at
    most every ten seconds.
    """
    seen, now = _seen.get(where.engine), monotonic()
    if seen is None or (_number(seen.revision) < _number(revision) and now - seen.at >= _LOOK_SECONDS):
        state = where.read(read_state) if isinstance(where, Database) else read_state(where)
        seen = _Seen("0" if state is None else state.revision, now)
        _seen[where.engine] = seen
    return _number(seen.revision) >= _number(revision)


def look_again() -> None:
    """Forget the cached revisions, after a migration."""
    _seen.clear()


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


def everybody_knows(connection: Connection, revision: str, now: Instant) -> bool:
    """Return whether all processes with a recent heartbeat know the revision."""
    alive = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS]
    return all(_number(row.process.about.schema) >= _number(revision) for row in alive)


def may_use(connection: Connection, revision: str, now: Instant) -> bool:
    """Return whether rows may be stored where only code that knows the revision finds them. Call it in each write.

    The first call at which all processes know the revision shuts older code out. The result stays `False` for 30 more
    seconds: by then a process that had just started has sent a heartbeat, and all processes have seen the new schema.
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
    """Return a revision as a number; 0 = it is none."""
    return int(revision) if isinstance(revision, str) and revision.isascii() and revision.isdigit() else 0


def _read(connection: Connection, table: str) -> str | None:
    """Return the revision in a table; None = there is none. Another program's table may have any columns and rows."""
    if not sa.inspect(connection).has_table(table):
        return None
    rows = connection.execute(sa.select(sa.text("*")).select_from(sa.table(table)).limit(4)).mappings().all()
    return ", ".join(str(row.get("version_num", "unreadable")) for row in rows) or None


def _write(connection: Connection, table: str, revision: str) -> None:
    if not sa.inspect(connection).has_table(table):
        connection.exec_driver_sql(_MAKE.format(table=table))
    target = sa.table(table, sa.column("version_num"))
    if connection.execute(sa.update(target).values(version_num=revision)).rowcount == 0:
        connection.execute(sa.insert(target).values(version_num=revision))
