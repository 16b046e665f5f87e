"""Brings the tables up to what this program needs, once, however many processes start at the same time.

All revisions that are missing run in one transaction under a lock: whoever comes second finds nothing
left to do, and a migration that fails leaves the database as it was.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert

from horarium.audit import Act
from horarium.clock import Clock, SystemClock
from horarium.instant import Instant
from horarium.recurrence.zone import tzdata_version
from horarium.store import audit
from horarium.store.database import Database
from horarium.store.errors import SchemaMissing, SchemaTooNew
from horarium.store.installation import set_planned_with
from horarium.store.plain_credentials import set_moved
from horarium.store.tables import namespaces

DEFAULT_NAMESPACE = "default"
DIRECTORY = Path(__file__).parent / "migrations"

# "horarium" in ASCII: a number that no other program's advisory lock is likely to have.
_LOCK = int.from_bytes(b"horarium", "big")
# Alembic keeps the environment of the running migration in a global variable.
_one_at_a_time = threading.Lock()


def migrate(database: Database, clock: Clock | None = None, *, until: str = "head") -> list[str]:
    """The revisions that were applied, oldest first; raises SchemaTooNew before touching anything.

    `until` stops at an older revision, for those who look at what an upgrade does.
    """
    now = (clock or SystemClock()).now()
    with _one_at_a_time:
        return database.write(lambda connection: _upgrade(connection, now, until))


def newest_revision() -> str:
    """That this program knows."""
    return str(_scripts().get_current_head())


def has_tables(database: Database) -> bool:
    """Whether anything of ours is there, of whatever revision."""
    return database.read(current_revision) is not None


def check_schema(database: Database) -> None:
    """Raises SchemaMissing or SchemaTooNew unless the tables are exactly those of this program."""
    current = database.read(current_revision)
    _refuse_newer(current)
    head = _scripts().get_current_head()
    if current != head:
        state = "has no tables yet" if current is None else f"is at revision {current} and {head} is needed"
        raise SchemaMissing(f"the database {state}; migrate it first")


def _upgrade(connection: Connection, now: Instant, until: str) -> list[str]:
    if connection.dialect.name == "postgresql":  # on SQLite the write transaction is the lock
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    current = current_revision(connection)
    _refuse_newer(current)
    scripts = _scripts()
    if until == "head" and current == scripts.get_current_head():
        return []
    applied: list[str] = []

    def steps(revision: str, _context: MigrationContext) -> Any:
        found = scripts._upgrade_revs(until, revision)
        applied.extend(step.revision.revision for step in found)
        return found

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
    if "0001" in applied and until == "head":
        _seed(connection, now)
    elif applied and until == "head":
        told = audit.local_deed(Act.DATABASE_MIGRATED, "service", before=current, after=applied[-1])
        audit.append(connection, DEFAULT_NAMESPACE, [told], now=now)
    return applied


def _seed(connection: Connection, now: Instant) -> None:
    """What a new database holds: the namespace of callers who name none, and who planned what is stored."""
    connection.execute(insert(namespaces).values(namespace=DEFAULT_NAMESPACE, description="", created_at=now))
    set_planned_with(connection, tzdata_version())
    set_moved(connection)


def current_revision(connection: Connection) -> str | None:
    """Of the tables; None = there are none."""
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_newer(current: str | None) -> None:
    if current is not None and current not in {script.revision for script in _scripts().walk_revisions()}:
        raise SchemaTooNew(f"the database was written by a newer Horarium (revision {current}); upgrade this program")


@cache
def _scripts() -> ScriptDirectory:
    """Loaded once: they are part of the program."""
    return ScriptDirectory(DIRECTORY)
