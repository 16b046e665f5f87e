"""Migrate the schema to what this program needs, once, however many processes start at the same time.

All missing revisions run in one transaction under a lock: a second process finds nothing to do, and a failed migration
leaves the database unchanged.

Processes are replaced one by one, so each migration leaves a schema that the previous release can use. It declares
`oldest_code`, the newest revision that the oldest such code knows, and `brings`, what is unavailable until it has run.
A migration without `oldest_code` shuts out all code that does not know it (docs/decisions/0029-expand-and-contract.md).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, assert_never

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, inspect

from horarium.audit import Act
from horarium.clock import Clock, SystemClock
from horarium.instant import Instant
from horarium.recurrence.zone import tzdata_version
from horarium.store import audit, schema_state
from horarium.store.database import Database
from horarium.store.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable, Transient
from horarium.store.installation import set_planned_with
from horarium.store.schema_state import REVISION_TABLE, Fit, SchemaState
from horarium.store.tables import metadata, namespaces

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
    schema_state.look_again()
    return applied


def has_tables(database: Database) -> bool:
    """Return whether the database has a schema of any revision."""
    return database.read(schema_state.read_state) is not None


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
    state = schema_state.read_state(connection)
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
    fit = schema_state.judge(state, first=str(_scripts().get_base()), oldest=OLDEST_SCHEMA, head=known)
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
    before = schema_state.read_state(connection)
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
        schema_state.set_oldest_code(connection, oldest_code(applied[-1]))
    if before is None:
        _seed(connection, now)
    elif applied:
        told = audit.local_deed(Act.DATABASE_MIGRATED, "service", before=before.revision, after=applied[-1])
        audit.append(connection, DEFAULT_NAMESPACE, [told], now=now)
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
