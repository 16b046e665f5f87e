"""Convert rows to values: the fields of a class name the columns, and some columns are parsed.

A row with a column that cannot be read is an error where something is decided (`read`, `one`, `all`). A list shows it
as unreadable, beside the other rows (`listed`): the column holds a stand-in of its type, and the value says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Column, Connection, Executable, Table, select

from horarium.instant import LAST
from horarium.policy.approval import NEVER
from horarium.schedule.damage import Marked, Unreadable, mark
from horarium.store.errors import CannotRead

R = TypeVar("R")

# The year 1; an instant before it has no text.
_FIRST = -62_135_596_800_000_000
_UNPARSED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_EMPTY = ("{}", "[]", "")
_PLAIN: Mapping[str, type] = {"int": int, "str": str}


class TypedRows(Generic[R]):
    """Rows of dataclass `kind`. Of columns that several tables have, the last table's are read.

    `key` is the field by which a row is known outside, the first one if it is not given. `stand_ins` replace values
    that cannot be read where the parser is not an enumeration and has no empty document. `renamed` are columns whose
    field has another name than they.
    """

    def __init__(
        self,
        kind: type[R],
        *tables: Table,
        key: str | None = None,
        stand_ins: Mapping[str, Any] | None = None,
        renamed: Mapping[str, Column[Any]] | None = None,
        **parsers: Callable[[Any], Any],
    ) -> None:
        names = [each.name for each in fields(cast("Any", kind))]
        columns: dict[str, Any] = {column.name: column for table in tables for column in table.columns}
        columns |= {name: column.label(name) for name, column in (renamed or {}).items()}
        self._kind = kind
        self._marked: type[Marked] = type(f"Unreadable{kind.__name__}", (kind, Marked), {})
        self._names = names
        self._parsers = [(names.index(name), parse) for name, parse in parsers.items()]
        self._stand_ins = {name: _stand_in(parse) for name, parse in parsers.items()} | dict(stand_ins or {})
        # Annotations are text: the modules postpone them.
        kinds = [str(each.type).removesuffix(" | None") for each in fields(cast("Any", kind))]
        self._instants = [place for place, each in enumerate(kinds) if each == "Instant"]
        # SQLite stores a value of any type in a column of any type.
        self._plain = [
            (place, _PLAIN[each]) for place, each in enumerate(kinds) if each in _PLAIN and names[place] not in parsers
        ]
        self._key = names.index(key or names[0])
        # Made once: to build a statement of many columns takes longer than to run it.
        self.select = select(*(columns[name] for name in names))

    def place_of(self, name: str) -> int:
        """Return where a column stands in `select`."""
        return self._names.index(name)

    def read(self, values: Sequence[Any]) -> R:
        """Convert the columns of `select`, in their order. Raises CannotRead."""
        row = [*values]
        wrong = self._parse(row)
        if wrong:
            raise CannotRead(self._kind.__name__.removesuffix("Row").lower(), row[self._key], "; ".join(wrong))
        return self._kind(*row)

    def listed(self, values: Sequence[Any]) -> R:
        """Convert as `read` does; a row that cannot be read is marked, and holds stand-ins."""
        row = [*values]
        wrong = self._parse(row)
        if not wrong:
            return self._kind(*row)
        marked = self._marked.__new__(self._marked)
        for name, value in zip(self._names, row, strict=True):
            object.__setattr__(marked, name, value)
        mark(marked, Unreadable(row[self._key], "; ".join(wrong)))
        return cast("R", marked)

    def one(self, connection: Connection, statement: Executable, values: Mapping[str, Any] | None = None) -> R | None:
        found = connection.execute(statement, values).one_or_none()
        return None if found is None else self.read(found)

    def all(self, connection: Connection, statement: Executable) -> list[R]:
        return [self.read(values) for values in connection.execute(statement).all()]

    def all_listed(self, connection: Connection, statement: Executable) -> list[R]:
        return [self.listed(values) for values in connection.execute(statement).all()]

    def _parse(self, row: list[Any]) -> list[str]:
        """Parse in place, with stand-ins for what cannot be read; return what is wrong."""
        wrong: list[str] = []
        for place, parse in self._parsers:
            try:
                row[place] = parse(row[place])
            except _UNPARSED as error:
                wrong.append(_problem(self._names[place], row[place], error))
                row[place] = self._stand_ins[self._names[place]]
        for place in self._instants:
            value = row[place]
            # One comparison settles the usual case.
            if value is not None and not (isinstance(value, int) and (_FIRST <= value <= LAST or value == NEVER)):
                wrong.append(f"{self._names[place]}: {_shown(value)} is not an instant between the years 1 and 9999")
                row[place] = 0
        for place, kind in self._plain:
            value = row[place]
            if value is not None and not isinstance(value, kind):
                wrong.append(f"{self._names[place]}: {_shown(value)} is not of type {kind.__name__}")
                row[place] = kind()
        return wrong


def _problem(name: str, value: object, error: Exception) -> str:
    """Name a word that is none of an enumeration; of JSON, which may be large or secret, only the fault."""
    if isinstance(error, ValueError) and " is not a valid " in str(error):
        return f"{name}: {_shown(value)} is not known"
    return f"{name}: {str(error)[:100]}" if isinstance(error, ValueError) else f"{name}: cannot be read"


def _shown(value: object) -> str:
    text = f"{value!r}"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _stand_in(parse: Callable[[Any], Any]) -> Any:
    words: Any = parse
    if isinstance(words, type) and issubclass(words, StrEnum):
        return next(iter(words))
    for text in _EMPTY:
        try:
            return parse(text)
        except _UNPARSED:
            continue
    return None
