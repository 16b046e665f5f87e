"""How rows become values: the fields of a class name the columns, and some columns are parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection, Executable, Table, select

R = TypeVar("R")


class TypedRows(Generic[R]):
    """Rows of dataclass `kind`. Of columns that several tables have, the last table's are read."""

    def __init__(self, kind: type[R], *tables: Table, **parsers: Callable[[Any], Any]) -> None:
        names = [each.name for each in fields(cast("Any", kind))]
        columns = {column.name: column for table in tables for column in table.columns}
        self._kind = kind
        self._names = names
        self._parsers = [(names.index(name), parse) for name, parse in parsers.items()]
        # Made once: to build a statement of many columns takes longer than to run it.
        self.select = select(*(columns[name] for name in names))

    def place_of(self, name: str) -> int:
        """Where a column stands in `select`."""
        return self._names.index(name)

    def read(self, values: Sequence[Any]) -> R:
        """Of the columns of `select`, in their order."""
        row = [*values]
        for place, parse in self._parsers:
            row[place] = parse(row[place])
        return self._kind(*row)

    def one(self, connection: Connection, statement: Executable, values: Mapping[str, Any] | None = None) -> R | None:
        found = connection.execute(statement, values).one_or_none()
        return None if found is None else self.read(found)

    def all(self, connection: Connection, statement: Executable) -> list[R]:
        return [self.read(values) for values in connection.execute(statement).all()]
