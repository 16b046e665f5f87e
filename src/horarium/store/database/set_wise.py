"""Changes of many rows by one statement: updates by key, and inserts.

SQLite gets an `executemany`. PostgreSQL gets an update as columns in JSON, and rows by binary COPY: of the ways
to hand five hundred rows to it these cost the least (ten times less than arrays as the driver writes them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Connection, Table

from horarium.store.database.json_text import event_text
from horarium.store.database.postgres import copy_rows

# Of variables in one statement SQLite takes 32,766, and older ones 999.
_KEYS_AT_ONCE = 900


class Update:
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


class Insert:
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
