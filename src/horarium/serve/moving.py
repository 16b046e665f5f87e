"""How an installation moves to another database: what stands against it, and then all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from horarium.clock import Clock, SystemClock
from horarium.decision.process_state import GONE_AFTER_SECONDS, silent_seconds
from horarium.errors import HorariumError
from horarium.store.copying import Tell, copy_all, count_rows, first_filled_table
from horarium.store.database import Database, open_database
from horarium.store.database.sqlite import database_path
from horarium.store.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from horarium.store.migrate import check_exact_schema, has_tables, migrate
from horarium.store.processes import process_rows


class MoveRefused(HorariumError):
    """Nothing was written."""

    reason = "move_refused"


class Move:
    """Made by `opened`; the two databases are fit to be copied from and to."""

    def __init__(self, source: Database, target: Database, clock: Clock) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self.source_url = source.url
        self.target_url = target.url

    def count(self) -> int:
        return sum(count_rows(self._source).values())

    def copy(self, tell: Tell) -> Mapping[str, int]:
        """The rows of each table; all of them, or none if this raises."""
        return copy_all(self._source, self._target, tell, now=self._clock.now())


@contextmanager
def opened(source_url: str, target_url: str, clock: Clock | None = None) -> Iterator[Move]:
    """Raises MoveRefused. A target without tables gets them."""
    clock = clock or SystemClock()
    with _database("--from", source_url, must_exist=True) as source:
        _check_schema("--from", source)
        _refuse_company("--from", source, clock)
        with _database("--to", target_url) as target:
            if target.url == source.url:
                raise MoveRefused(f"--from and --to are the same database: {source.url}")
            if has_tables(target):
                _check_schema("--to", target)
                _refuse_company("--to", target, clock)
            else:
                migrate(target, clock)
            filled = first_filled_table(target)
            if filled is not None:
                raise MoveRefused(f"--to: table {filled} has rows; use an empty database instead of {target.url}")
            yield Move(source, target, clock)


@contextmanager
def _database(flag: str, url: str, *, must_exist: bool = False) -> Iterator[Database]:
    is_file = "://" not in url or url.startswith("sqlite:")
    # To open a file that is not there would make it.
    if must_exist and is_file and not database_path(url).is_file():
        raise MoveRefused(f"{flag}: the database {database_path(url)} does not exist")
    database = open_database(url)
    try:
        yield database
    finally:
        database.close()


def _check_schema(flag: str, database: Database) -> None:
    try:
        check_exact_schema(database)
    except SchemaMissing as wrong:
        raise MoveRefused(f"{flag}: {wrong.message} (horarium migrate --database …)") from None
    except (SchemaTooNew, SchemaTooOld) as wrong:
        raise MoveRefused(f"{flag}: {wrong.message}") from None


def _refuse_company(flag: str, database: Database, clock: Clock) -> None:
    """Refuse to move while another process is active: its writes would be lost."""
    company = company_on(database, clock)
    if company is not None:
        raise MoveRefused(f"{flag}: {company}")


def company_on(database: Database, clock: Clock) -> str | None:
    """Return why exclusive access to the database is impossible; None = it is possible."""
    now = clock.now() + database.clock_offset(clock)
    for row in database.read(process_rows):
        if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS:
            return (
                f"Process {row.owner} uses this database. Stop all processes first "
                f"(a killed process counts as stopped after {GONE_AFTER_SECONDS} seconds)"
            )
    return None
