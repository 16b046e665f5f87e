"""Queries by many values: lists, in sorted order and in chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, tuple_

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
