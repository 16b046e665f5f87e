"""The size limit of a page: two megabytes, or one row. Larger values are not read.

A row of a list has one column that its writer may fill: a document, a payload. Small ones come with their row. Of
large ones only the size comes first, and then those that fit, so that no page costs more memory than it may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

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


def page(
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
