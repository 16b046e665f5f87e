"""What older code may rely on in a database, and what of it a migration takes away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection


@dataclass(frozen=True)
class Column:
    """`needed`: an insert must name it, since it has no default and is never empty."""

    type: str
    needed: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True)
class Shape:
    """`tables` are views too. `uniques` are the unique indexes and keys by name, with what they hold and where."""

    tables: Mapping[str, Mapping[str, Column]]
    uniques: Mapping[str, str] = field(default_factory=dict)
    indexes: frozenset[str] = frozenset()


def losses(before: Shape, after: Shape) -> Iterator[str]:
    """What code that was written for the one cannot do on the other, in words that a migration can name."""
    for table, columns in before.tables.items():
        if table not in after.tables:
            yield f"table {table}"
            continue
        yield from _of_table(table, columns, after.tables[table])
    for index in sorted(before.indexes - after.indexes):
        if index.partition(" on ")[2] in after.tables:
            yield f"index {index}"
    for name, what in after.uniques.items():
        if what.partition(" ")[0] in before.tables and name not in before.uniques:
            yield f"freedom of {name}"


def _of_table(table: str, before: Mapping[str, Column], after: Mapping[str, Column]) -> Iterator[str]:
    for name, column in before.items():
        if name not in after:
            yield f"column {table}.{name}"
        elif after[name].type != column.type:
            yield f"type of {table}.{name}"
        elif after[name].needed and not column.needed:
            yield f"default of {table}.{name}"
        elif column.may_be_empty and not after[name].may_be_empty:
            yield f"emptiness of {table}.{name}"
    for name, column in after.items():
        if name not in before and column.needed:
            yield f"inserts into {table} without {name}"


def shape_of(connection: Connection) -> Shape:
    """Partitions belong to their tables."""
    found = sa.inspect(connection)
    parts: set[str] = set()
    if connection.dialect.name == "postgresql":
        parts = set(connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relispartition").scalars())
    names = [name for name in found.get_table_names() if name not in parts]
    uniques: dict[str, str] = {}
    indexes: set[str] = set()
    for table in names:
        for index in found.get_indexes(table):
            name, held = str(index["name"]), ", ".join(str(column) for column in index["column_names"])
            indexes.add(f"{name} on {table}")
            if index["unique"]:
                uniques[name] = f"{table} ({held})"
    views = found.get_view_names()
    return Shape({name: _columns(found.get_columns(name)) for name in [*names, *views]}, uniques, frozenset(indexes))


def _columns(found: list[Any]) -> dict[str, Column]:
    return {each["name"]: _column(each) for each in found}


def _column(found: Mapping[str, Any]) -> Column:
    empty = bool(found["nullable"])
    has_value = found.get("default") is not None or found.get("autoincrement") is True or found.get("identity")
    return Column(str(found["type"]), needed=not empty and not has_value, may_be_empty=empty)
