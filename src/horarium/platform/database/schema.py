"""Migrate the schema to the revision that this program needs, and tell which features its state allows.

All missing revisions run in one transaction under a lock: a second process finds nothing to do, and a failed migration
leaves the database unchanged.

Processes are replaced one by one, so each migration leaves a schema that the previous release can use. It declares
`oldest_code`, the newest revision that the oldest such code knows, and `brings`, what is unavailable until it has run.
A migration without `oldest_code` shuts out all code that does not know it (docs/decisions/0029-expand-and-contract.md).

Two tables of one row hold the state. `schema_revision` has the revision of the schema. `alembic_version` has the oldest
code that may use it, as the newest revision which that code knows: code compares it with its own newest revision, so
older code continues where it can and is refused where it cannot.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, assert_never
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert, inspect

from horarium.core.audit_entries import Act
from horarium.core.decision.presence import GONE_AFTER_SECONDS, silent_seconds
from horarium.core.recurrence.zone import tzdata_version
from horarium.instant import SECOND, Instant
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.database import Database, audit_chain, installation
from horarium.platform.database.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable, Transient
from horarium.platform.database.installation import set_planned_with
from horarium.platform.database.processes import process_rows
from horarium.platform.database.tables import metadata, namespaces

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


DEFAULT_NAMESPACE = "default"
DIRECTORY = Path(__file__).parent / "migrations"
# The newest revision of the previous release, whose schema this program can use. The first release has none before it.
OLDEST_SCHEMA = "0021"

# How long a migration waits for a table that another transaction has locked: all others wait behind it.
LOCK_WAIT = "5s"

# "horarium" in ASCII: a number that no other program's advisory lock is likely to have.
_LOCK = int.from_bytes(b"horarium", "big")
# Alembic keeps the environment of the running migration in a global variable.
_one_at_a_time = threading.Lock()


def migrate(database: Database, clock: Clock | None = None, *, until: str = "head") -> list[str]:
    """Apply the missing revisions and return them, oldest first.

    Raises SchemaTooNew or SchemaTooOld before it changes anything, and StoreUnavailable where another transaction
    keeps a table locked. `until` stops at an older revision, for tests of an upgrade.
    """
    now = (clock or SystemClock()).now()
    with _one_at_a_time:
        try:
            applied = database.write(lambda connection: _upgrade(connection, now, until))
        except Transient as busy:
            if not busy.outcome_known:
                raise
            open_one = "another transaction, such as a backup, has locked a table"
            raise StoreUnavailable(f"Nothing was migrated: {open_one}; try again when it has ended ({busy})") from busy
    look_again()
    return applied


def has_tables(database: Database) -> bool:
    """Return whether the database has a schema of any revision."""
    return database.read(read_state) is not None


def newest_revision() -> str:
    """Return the newest revision that this program knows."""
    return str(_scripts().get_current_head())


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """The fit of a schema to this program. `missing` lists what is unavailable until a migration."""

    fit: Fit
    sentence: str
    missing: tuple[str, ...] = ()


def examine_schema(database: Database) -> SchemaReport:
    """Report on the schema without an exception."""
    return database.read(_examine)


def check_schema(database: Database) -> SchemaReport:
    """Raise SchemaMissing, SchemaTooOld or SchemaTooNew unless this program can use the schema."""
    found = examine_schema(database)
    _refuse(found)
    return found


def check_exact_schema(database: Database) -> None:
    """Do the same for work on all rows of all tables, which needs exactly the schema that this program knows."""
    found = check_schema(database)
    if found.fit is Fit.OLDER:
        raise SchemaMissing(f"{found.sentence}; migrate it first")
    if found.fit is Fit.NEWER:
        raise SchemaTooNew(f"{found.sentence}, but this needs the newer program")


def _refuse(found: SchemaReport) -> None:
    match found.fit:
        case Fit.NO_TABLES | Fit.TOO_OLD:
            raise SchemaMissing(found.sentence)
        case Fit.UNSUPPORTED | Fit.FOREIGN:
            raise SchemaTooOld(found.sentence)
        case Fit.TOO_NEW:
            raise SchemaTooNew(found.sentence)
        case Fit.OLDER | Fit.EXACT | Fit.NEWER:
            return
        case _:
            assert_never(found.fit)


def _examine(connection: Connection) -> SchemaReport:
    state = read_state(connection)
    if state is None and (taken := _own_tables(connection)):
        has = f"The database has tables with names of Horarium ({_listed(taken)}) but no schema revision"
        return SchemaReport(Fit.FOREIGN, f"{has}; use a new database, or restore a backup if it is damaged")
    return _report(state)


def _own_tables(connection: Connection) -> set[str]:
    """Return the tables that have the name of one of ours."""
    return {*inspect(connection).get_table_names()} & {*metadata.tables, REVISION_TABLE}


def _listed(names: set[str]) -> str:
    first, rest = sorted(names)[:3], len(names) - 3
    return ", ".join(first) + (f" and {rest} more" if rest > 0 else "")


def _report(state: SchemaState | None) -> SchemaReport:
    known = newest_revision()
    fit = judge(state, first=str(_scripts().get_base()), oldest=OLDEST_SCHEMA, head=known)
    if state is None:
        return SchemaReport(fit, "The database has no Horarium tables; migrate it first")
    now = state.revision
    match fit:
        case Fit.OLDER:
            missing = _brought_after(now)
            off = f"Unavailable until you migrate it: {'; '.join(missing)}"
            return SchemaReport(fit, f"The schema is at revision {now}; this program knows {known}. {off}", missing)
        case Fit.EXACT:
            return SchemaReport(fit, "Schema current")
        case Fit.NEWER:
            return SchemaReport(fit, f"The schema (revision {now}) is newer than this program ({known}) and compatible")
        case Fit.FOREIGN:
            other = f"The schema revision of the database is {now[:64]}, which is not one of Horarium"
            return SchemaReport(fit, f"{other}; use a new database")
        case Fit.UNSUPPORTED:
            made = f"The database was created by an unreleased version (schema revision {now})"
            return SchemaReport(fit, f"{made} and cannot be migrated; use a new database")
        case Fit.TOO_OLD | Fit.NO_TABLES:
            needed = f"this program needs {OLDEST_SCHEMA} or newer"
            return SchemaReport(fit, f"The schema is at revision {now}, but {needed}; migrate it first")
        case Fit.TOO_NEW:
            newer = f"The database was migrated by a newer Horarium (schema revision {state.oldest_code})"
            return SchemaReport(fit, f"{newer}; upgrade this program")
        case _:
            assert_never(fit)


def _upgrade(connection: Connection, now: Instant, until: str) -> list[str]:
    if connection.dialect.name == "postgresql":  # on SQLite the write transaction is the lock
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
    before = read_state(connection)
    found = _examine(connection)
    if found.fit in (Fit.TOO_NEW, Fit.UNSUPPORTED, Fit.FOREIGN):
        _refuse(found)
    if found.fit is Fit.EXACT and (lost := {*metadata.tables} - _own_tables(connection)):
        raise SchemaTooOld(f"The database lacks tables of its schema revision ({_listed(lost)}); restore a backup")
    if found.fit is Fit.NEWER or (found.fit is Fit.EXACT and until == "head"):
        return []
    scripts = _scripts()
    applied: list[str] = []

    def steps(revision: str, _context: MigrationContext) -> Any:
        found = scripts._upgrade_revs(until, revision)
        applied.extend(step.revision.revision for step in found)
        return found

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=REVISION_TABLE)
        environment.run_migrations()
    if applied:
        set_oldest_code(connection, oldest_code(applied[-1]))
    if before is None:
        _seed(connection, now)
    elif applied:
        told = audit_chain.local_deed(Act.DATABASE_MIGRATED, "service", before=before.revision, after=applied[-1])
        audit_chain.append(connection, DEFAULT_NAMESPACE, [told], now=now)
    return applied


def oldest_code(revision: str) -> str:
    """Return the oldest code that may use the schema of a revision: its own, unless the migration declares older."""
    script = _scripts().get_revision(revision)
    return str(getattr(script.module, "oldest_code", revision))


def _brought_after(revision: str) -> tuple[str, ...]:
    """Return what the revisions after this one bring, oldest first."""
    newer = reversed(list(_scripts().iterate_revisions("head", revision)))
    return tuple(str(getattr(each.module, "brings", each.doc)) for each in newer)


def _seed(connection: Connection, now: Instant) -> None:
    """Insert what a new database holds: the default namespace, and the version of the time zone rules."""
    connection.execute(insert(namespaces).values(namespace=DEFAULT_NAMESPACE, description="", created_at=now))
    set_planned_with(connection, tzdata_version())


@cache
def _scripts() -> ScriptDirectory:
    """Load the scripts once: they are part of the program."""
    return ScriptDirectory(DIRECTORY)
