"""Brings the tables up to what this program needs, once, however many processes start at the same time.

All revisions that are missing run in one transaction under a lock: whoever comes second finds nothing
left to do, and a migration that fails leaves the database as it was.

Processes are replaced one by one, so every migration leaves tables on which the code of the release before goes on. It
says so by `oldest_code`, the newest revision that the oldest such code knows, and by `brings`, what is off until it has
run. Without `oldest_code` it shuts out all code that does not know it (docs/decisions/0029-expand-and-contract.md).
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
from sqlalchemy import Connection, insert

from horarium.audit import Act
from horarium.clock import Clock, SystemClock
from horarium.instant import Instant
from horarium.recurrence.zone import tzdata_version
from horarium.store import audit, schema_state
from horarium.store.database import Database
from horarium.store.errors import SchemaMissing, SchemaTooNew, StoreUnavailable, Transient
from horarium.store.installation import set_planned_with
from horarium.store.schema_state import REVISION_TABLE, Fit, SchemaState
from horarium.store.tables import namespaces

DEFAULT_NAMESPACE = "default"
DIRECTORY = Path(__file__).parent / "migrations"
# The tables of the release before: this program works on them as well, without what came later.
OLDEST_SCHEMA = "0021"

# "horarium" in ASCII: a number that no other program's advisory lock is likely to have.
_LOCK = int.from_bytes(b"horarium", "big")
# Alembic keeps the environment of the running migration in a global variable.
_one_at_a_time = threading.Lock()


def migrate(database: Database, clock: Clock | None = None, *, until: str = "head") -> list[str]:
    """The revisions that were applied, oldest first; raises SchemaTooNew before touching anything, and
    StoreUnavailable where somebody holds a table for long.

    `until` stops at an older revision, for those who look at what an upgrade does.
    """
    now = (clock or SystemClock()).now()
    with _one_at_a_time:
        try:
            applied = database.write(lambda connection: _upgrade(connection, now, until))
        except Transient as busy:
            if not busy.outcome_known:
                raise
            open_one = "another transaction on the tables is still open, such as that of a backup"
            raise StoreUnavailable(f"nothing was migrated: {open_one}; try again when it has ended ({busy})") from busy
    schema_state.look_again()
    return applied


def has_tables(database: Database) -> bool:
    """Whether anything of ours is there, of whatever revision."""
    return database.read(schema_state.read_state) is not None


def newest_revision() -> str:
    """That this program knows."""
    return str(_scripts().get_current_head())


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """`missing` is what the program knows and the tables do not bring; `sentence` tells all of it."""

    fit: Fit
    sentence: str
    missing: tuple[str, ...] = ()


def examine_schema(database: Database) -> SchemaReport:
    """Never refuses: for those who only want to know."""
    return _report(database.read(schema_state.read_state))


def check_schema(database: Database) -> SchemaReport:
    """Raises SchemaMissing or SchemaTooNew unless this program can work on the tables as they are."""
    found = examine_schema(database)
    _refuse(found)
    return found


def check_exact_schema(database: Database) -> None:
    """The same for what concerns every row of every table: it needs exactly the tables that this program knows."""
    found = check_schema(database)
    if found.fit is Fit.OLDER:
        raise SchemaMissing(f"{found.sentence}; migrate it first")
    if found.fit is Fit.NEWER:
        raise SchemaTooNew(f"{found.sentence}, but for this the newer program is needed")


def _refuse(found: SchemaReport) -> None:
    match found.fit:
        case Fit.NO_TABLES | Fit.TOO_OLD:
            raise SchemaMissing(found.sentence)
        case Fit.TOO_NEW:
            raise SchemaTooNew(found.sentence)
        case Fit.OLDER | Fit.EXACT | Fit.NEWER:
            return
        case _:
            assert_never(found.fit)


def _report(state: SchemaState | None) -> SchemaReport:
    known = newest_revision()
    fit = schema_state.judge(state, oldest=OLDEST_SCHEMA, head=known)
    if state is None:
        return SchemaReport(fit, "the database has no tables yet; migrate it first")
    now = state.revision
    match fit:
        case Fit.OLDER:
            missing = _brought_after(now)
            off = f"until they are migrated it does without {'; '.join(missing)}"
            return SchemaReport(fit, f"the tables are at revision {now} and this program knows {known}: {off}", missing)
        case Fit.EXACT:
            return SchemaReport(fit, "the tables are those of this program")
        case Fit.NEWER:
            return SchemaReport(fit, f"the tables are newer (revision {now}) than this program ({known}), and fit it")
        case Fit.TOO_OLD | Fit.NO_TABLES:
            needed = f"{OLDEST_SCHEMA} or newer is needed"
            return SchemaReport(fit, f"the database is at revision {now} and {needed}; migrate it first")
        case Fit.TOO_NEW:
            newer = f"the database was written by a newer Horarium (revision {state.oldest_code})"
            return SchemaReport(fit, f"{newer}; upgrade this program")
        case _:
            assert_never(fit)


def _upgrade(connection: Connection, now: Instant, until: str) -> list[str]:
    if connection.dialect.name == "postgresql":  # on SQLite the write transaction is the lock
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    before = schema_state.read_state(connection)
    found = _report(before)
    if found.fit is Fit.TOO_NEW:
        _refuse(found)
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
    """Which code may use the tables as this revision leaves them; its own, unless it says that older code may too."""
    script = _scripts().get_revision(revision)
    return str(getattr(script.module, "oldest_code", revision))


def _brought_after(revision: str) -> tuple[str, ...]:
    """What the revisions after this one bring, oldest first."""
    newer = reversed(list(_scripts().iterate_revisions("head", revision)))
    return tuple(str(getattr(each.module, "brings", each.doc)) for each in newer)


def _seed(connection: Connection, now: Instant) -> None:
    """What a new database holds: the namespace of callers who name none, and who planned what is stored."""
    connection.execute(insert(namespaces).values(namespace=DEFAULT_NAMESPACE, description="", created_at=now))
    set_planned_with(connection, tzdata_version())


@cache
def _scripts() -> ScriptDirectory:
    """Loaded once: they are part of the program."""
    return ScriptDirectory(DIRECTORY)
