"""Copy a whole database: every table of the schema, batch by batch, in one transaction of the target.

Rows are copied unchanged, down to their numbers. Only what is specific to a server is translated: PostgreSQL orders
the feed by transactions, which SQLite does not have. Rows from SQLite become an epoch of their own, written by a server
that no longer exists, so that a reader of the feed continues from its cursor (see `features/history/entry_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.core.audit_entries import Act
from horarium.errors import HorariumError
from horarium.instant import Instant
from horarium.platform.database import Database, audit_chain, run_archive
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.database.statements import RowInsert
from horarium.platform.database.tables import feed_epochs, history, installation, metadata, namespaces, runs

Tell: TypeAlias = Callable[[int], None]
"""Told how many rows have been copied so far."""

# A document may have a megabyte: few enough to be held at once.
_BATCH = 200
# What a migration itself puts into a new database.
_SEEDED = (feed_epochs, installation, namespaces)
_TRANSACTION = "transaction_id"


class CopyFailed(HorariumError):
    """The target is as it was before."""

    reason = "copy_failed"


def count_rows(database: Database) -> Mapping[str, int]:
    """By table, of one moment."""
    return database.read(lambda connection: {table.name: _count_all(connection, table) for table in _tables()})


def first_filled_table(database: Database) -> str | None:
    """Find a table with rows in a database that should be empty; None = all tables are empty."""
    return database.read(_first_filled)


def copy_all(source: Database, target: Database, tell: Tell, *, now: Instant) -> Mapping[str, int]:
    """Return the number of copied rows by table. The target has the tables and no rows.

    The audit continues in the target, with an entry about the copy.
    """
    return source.read(lambda reading: target.write(lambda writing: _copy_all(reading, writing, tell, now)))


def _tables() -> Sequence[Table]:
    """A table comes after those that it refers to."""
    return metadata.sorted_tables


def _first_filled(connection: Connection) -> str | None:
    for table in (*_tables(), *run_archive.tables(connection)):
        if table not in _SEEDED and connection.execute(sa.select(sa.exists(sa.select(table)))).scalar_one():
            return table.name
    other = sa.exists(sa.select(namespaces).where(namespaces.c.namespace != DEFAULT_NAMESPACE))
    return namespaces.name if connection.execute(sa.select(other)).scalar_one() else None


def _copy_all(reading: Connection, writing: Connection, tell: Tell, now: Instant) -> Mapping[str, int]:
    for connection in (reading, writing):
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    for table in _SEEDED:
        writing.execute(sa.delete(table))
    copied: dict[str, int] = {}
    done = 0
    for table in _tables():
        copied[table.name] = 0
        for rows in _batches(reading, writing, table):
            RowInsert(table, table.c.keys()).run(writing, rows)
            copied[table.name] += len(rows)
            done += len(rows)
            tell(done)
    _refuse_losses(writing, copied)
    told = audit_chain.local_deed(Act.DATABASE_COPIED, "cli", rows=done)
    audit_chain.append(writing, DEFAULT_NAMESPACE, [told], now=now)
    if writing.dialect.name == "postgresql":
        _count_on(writing)
        _begin_epoch(writing, was_sqlite=reading.dialect.name == "sqlite")
    return copied


def _batches(reading: Connection, writing: Connection, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    between_servers = reading.dialect.name == writing.dialect.name == "postgresql"
    if table is feed_epochs and not between_servers:
        return
    place = list(table.c.keys()).index(_TRANSACTION) if table is history and not between_servers else None
    # 0 is before all transactions of any server; SQLite says that it has none.
    instead = 0 if writing.dialect.name == "postgresql" else None
    # Of the columns by name: a table that grew by migrations may have them in another order.
    for each in run_archive.tables(reading) if table is runs else (table,):
        columns = [each.c[column.name] for column in table.c]
        found = reading.execute(sa.select(*columns), execution_options={"yield_per": _BATCH})
        for rows in found.partitions():
            plain = [tuple(row) for row in rows]
            yield plain if place is None else [(*row[:place], instead, *row[place + 1 :]) for row in plain]


def _refuse_losses(writing: Connection, copied: Mapping[str, int]) -> None:
    for table in _tables():
        sent, there = copied[table.name], _count(writing, table)
        if there != sent:
            raise CopyFailed(
                f"{table.name}: {sent} rows were sent, but {there} arrived; the whole copy was rolled back"
            )


def _count_on(writing: Connection) -> None:
    """The next row gets a number behind the last one."""
    for table in _tables():
        column = table.autoincrement_column
        if column is not None:
            writing.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'), max({column.name})) "
                f"FROM {table.name} HAVING max({column.name}) IS NOT NULL"
            )


def _begin_epoch(writing: Connection, *, was_sqlite: bool) -> None:
    """From here on this server writes history."""
    if was_sqlite:
        writing.execute(sa.insert(feed_epochs).values(epoch=1, server="former", first_feed_id=0))
    writing.exec_driver_sql("SELECT horarium_notice_server()")


def _count_all(connection: Connection, table: Table) -> int:
    """Count rows, of `runs` also those in the archive: a copy has them in `runs` until they are archived again."""
    places = run_archive.tables(connection) if table is runs else (table,)
    return sum(_count(connection, each) for each in places)


def _count(connection: Connection, table: Table) -> int:
    number: int = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    return number
