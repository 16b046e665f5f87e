"""Statements about many rows: changes and lookups by key, counts and pages with a bound, namespaces in scope.

SQLite gets an `executemany` for changes by key. PostgreSQL gets an update as columns in JSON, and rows by binary COPY:
of the ways to hand five hundred rows to it these cost the least (ten times less than arrays as the driver writes them).

A page holds two megabytes, or one row. A row of a list has one column that its writer may fill: a document, a payload.
Small ones come with their row. Of large ones only the size is read first, and then those that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from horarium.platform.database.columns import event_text
from horarium.platform.database.postgres import copy_rows
from horarium.platform.database.tables import namespaces

# Of variables in one statement SQLite takes 32,766, and older ones 999.
_KEYS_AT_ONCE = 900


class RowUpdate:
    """An update of `columns`; the first is the key."""

    def __init__(self, of: Table, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._kinds = [_kind(of.c[name]) for name in columns]
        table, (key, *rest) = of.name, columns
        self._sqlite = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in rest)} WHERE {key} = ?"
        named = zip(columns, self._kinds, strict=True)
        texts = ", ".join(f"{_from_text(place, kind)} AS {name}" for place, (name, kind) in enumerate(named))
        self._postgres = f"""
UPDATE {table} SET {", ".join(f"{name} = new.{name}" for name in rest)}
FROM (
  SELECT {texts}
  FROM ROWS FROM ({", ".join(["json_array_elements_text(%s::json)"] * len(columns))})
    AS columns ({", ".join(f"c{number}" for number in range(len(columns)))})
) AS new
WHERE {table}.{key} = new.{key} AND {table}.{key} = ANY(%s::{self._kinds[0]}[])
"""

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Update rows; each has its values in the order of the columns."""
        if not rows:
            return
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._sqlite, [(*row[1:], row[0]) for row in rows])
            return
        columns = [*zip(*rows, strict=True)]
        texts = [_json_column(kind, values) for kind, values in zip(self._kinds, columns, strict=True)]
        # The keys once more, as a list: without it the planner reads a table that it takes for small as a whole.
        connection.exec_driver_sql(self._postgres, (*texts, list(columns[0])))


class RowInsert:
    """An insert of `columns`; `constants` are the same in each row."""

    def __init__(self, of: Table, columns: Sequence[str], constants: Mapping[str, int] | None = None) -> None:
        fixed = constants or {}
        names = [*columns, *fixed]
        self._kinds = [_kind(of.c[name]) for name in names]
        self._values = tuple(fixed.values())
        marks = ", ".join([*("?" * len(columns)), *(str(value) for value in self._values)])
        self._sqlite = f"INSERT INTO {of.name} ({', '.join(names)}) VALUES ({marks})"
        self._postgres = f"COPY {of.name} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
        self._alone = self._sqlite.replace("?", "%s")

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._sqlite, list(rows))
        elif len(rows) == 1:  # a COPY goes to the server twice
            connection.exec_driver_sql(self._alone, rows[0])
        else:
            copy_rows(connection, self._postgres, self._kinds, rows, self._values)


def select_by_ids(connection: Connection, statement: str, ids: Sequence[bytes], tail: str = "") -> list[Sequence[Any]]:
    """Select by ids; `statement` ends where their list begins: `… WHERE run_id`."""
    if connection.dialect.name == "postgresql":
        return list(connection.exec_driver_sql(f"{statement} = ANY(%s) {tail}", (list(ids),)))
    found: list[Sequence[Any]] = []
    for start in range(0, len(ids), _KEYS_AT_ONCE):
        chunk = ids[start : start + _KEYS_AT_ONCE]
        found += connection.exec_driver_sql(_in_list(statement, len(chunk), tail), tuple(chunk))
    return found


@lru_cache(maxsize=1_024)
def _in_list(statement: str, count: int, tail: str) -> str:
    return f"{statement} IN ({', '.join('?' * count)}) {tail}"


_KINDS = {"BLOB": "bytea", "TEXT": "text", "INTEGER": "int4", "BIGINT": "int8", "BOOLEAN": "bool"}


def _kind(column: Column[Any]) -> str:
    """Return the type in PostgreSQL, by the name that COPY knows."""
    return _KINDS[str(column.type)]


def _json_column(kind: str, values: Sequence[Any]) -> str:
    return event_text([value and value.hex() for value in values] if kind == "bytea" else values)


def _from_text(number: int, kind: str) -> str:
    return f"decode(c{number}, 'hex')" if kind == "bytea" else f"c{number}::{kind}"


_PIECE = 5_000


def rows_with(
    connection: Connection,
    statement: Select[Any],
    columns: Sequence[ColumnElement[Any]],
    values: Collection[tuple[Any, ...]],
) -> Iterator[Any]:
    """Yield the rows whose columns have one of the values, in sorted order and in chunks.

    A list and no chain of ORs: SQLite takes a thousand of those at most. And a statement takes 65,535 parameters
    at most, of which a large batch may need more.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), _PIECE):
        yield from connection.execute(statement.where(tuple_(*columns).in_(ordered[start : start + _PIECE])))


MAX_PAGE_BYTES = 2 * 1_024 * 1_024
INLINE_BYTES = 8_192
# What an answer says about each row beside that column.
_ROW_BYTES = 512

Row = Sequence[Any]


def fitting(sizes: Iterable[int], most: int = MAX_PAGE_BYTES) -> int:
    """Return how many of the first sizes fit; at least one, so that readers make progress."""
    count = total = 0
    for size in sizes:
        total += size
        if count and total > most:
            break
        count += 1
    return count


class byte_size(sa.sql.functions.FunctionElement[int]):  # noqa: N801 - a function of SQL
    """The size of a value; neither database reads a large value for it."""

    type = sa.Integer()
    inherit_cache = True


@compiles(byte_size)
def _octets(element: byte_size, compiler: SQLCompiler, **given: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **given)})"


@compiles(byte_size, "sqlite")
def _octets_of_blob(element: byte_size, compiler: SQLCompiler, **given: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **given)} AS BLOB))"


def sized(statement: sa.Select[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    """Select NULL for the column where it is large, and its size as the last column."""
    size = byte_size(column)
    small = sa.case((size <= INLINE_BYTES, column))
    columns = [small if each is column else each for each in statement.selected_columns]
    return statement.with_only_columns(*columns, size, maintain_column_froms=True)


def page_within_bytes(
    rows: Sequence[Row], limit: int, place: int, load: Callable[[Sequence[Row]], Mapping[Row, Any]]
) -> tuple[list[Row], bool]:
    """Return the first `limit` rows of a sized statement that fit, without their size, and whether there are more.

    `place` is where the column stands; `load` reads it for rows where it is large.
    """
    shown = rows[: min(limit, fitting(map(size_of, rows)))]
    large = [row for row in shown if row[-1] > INLINE_BYTES]
    more = len(rows) > len(shown)
    if not large:
        return [row[:-1] for row in shown], more
    loaded = load(large)
    # What was removed since is left out.
    there = [row for row in shown if row[-1] <= INLINE_BYTES or row in loaded]
    return [(*row[:place], loaded.get(row, row[place]), *row[place + 1 : -1]) for row in there], more


def size_of(row: Row) -> int:
    size: int = row[-1]
    return size + _ROW_BYTES


def load_by(
    connection: Connection, key: sa.Column[Any], place: int, column: sa.Column[Any]
) -> Callable[[Sequence[Row]], Mapping[Row, Any]]:
    """Return a loader by the key at `place` of each row."""

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_key = {row[place]: row for row in rows}
        found = connection.execute(sa.select(key, column).where(key.in_(list(by_key))))
        return {by_key[name]: value for name, value in found}

    return load


def count_up_to(connection: Connection, rows: sa.Select[Any], most: int) -> int:
    """Count rows; `most` means at least so many."""
    some = rows.limit(most).subquery()
    found: int = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    return found


Scope: TypeAlias = str | None
"""A namespace; None = all of the installation."""


_GONE = sa.select(namespaces.c.namespace).where(namespaces.c.deleted_at.is_not(None))
_LIVE = sa.select(namespaces.c.namespace).where(namespaces.c.deleted_at.is_(None))


def within_scope(column: sa.ColumnElement[Any], scope: Scope) -> sa.ColumnElement[bool]:
    """For a list in the order of ids, which needs no index on the namespace to cover all of them."""
    return column.not_in(_GONE) if scope is None else column == scope


def within_each_of_scope(column: sa.ColumnElement[Any], scope: Scope) -> sa.ColumnElement[bool]:
    """For a count along an index that begins with the namespace: SQLite seeks each namespace in it."""
    return column.in_(_LIVE) if scope is None else column == scope
