"""Values in columns: JSON text in both directions, and rows as typed values.

JSON text is compact, has its keys in order, and is read back exactly. The faster library supports neither integers
beyond 64 bits nor lone surrogates; the standard library handles those.

The fields of a class name the columns of a typed row. A column that cannot be read is an error where something is
decided (`read`, `one`, `all`). A list shows such a row beside the others (`listed`): the column holds a stand-in of
its type, and the value says that it is unreadable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

import orjson
from sqlalchemy import Column, Connection, Executable, Table, select

from horarium.core.document.json_values import UNREADABLE, MarkedRow, UnreadableEntry, damaged, mark_unreadable
from horarium.core.policy.approval import NEVER
from horarium.instant import LAST
from horarium.platform.database.errors import CannotRead

# As many digits as an integer beyond 64 bits has at least: the faster reader would make a float of it. Looked for in
# bytes whose digits are all zeros, which takes a tenth of the time of a pattern.
_LONG_NUMBER = b"0" * 19
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def to_text(value: object) -> str:
    """Encode a document exactly. Raise ValueError for NaN and TypeError for what JSON cannot represent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)


def event_text(value: object) -> str:
    """Encode the payload of an event; what JSON cannot represent becomes text."""
    try:
        return orjson.dumps(value, default=_plain_or_text).decode()
    except TypeError:
        return json.dumps(value, default=_plain_or_text, separators=(",", ":"))


def from_text(text: str | None) -> Any:
    if text is None:
        return None
    raw = text.encode("utf-8", "surrogatepass")
    if _LONG_NUMBER in raw.translate(_ZEROS):
        return json.loads(text)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(text)


def object_from_text(text: str) -> dict[str, Any]:
    """Parse an object of a row that may be damaged; anything else becomes a value that no reader accepts."""
    try:
        found = from_text(text)
    except ValueError as wrong:
        return damaged(f"it is not valid JSON: {wrong}")
    return found if isinstance(found, dict) else damaged("it is not a JSON object")


def value_from_text(text: str | None) -> Any:
    """Parse any value, as `object_from_text` does."""
    try:
        return from_text(text)
    except ValueError as wrong:
        return damaged(f"it is not valid JSON: {wrong}")


def names_from_text(text: str) -> tuple[str, ...]:
    """Parse a list of names; anything else becomes a name that does not exist."""
    try:
        found = from_text(text)
    except ValueError:
        return UNREADABLE
    is_names = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if is_names else UNREADABLE


def cycle_from_text(text: str) -> tuple[str, ...]:
    """Read the nodes of a cycle; of what cannot be read it is not known that there is none."""
    names = names_from_text(text)
    return ("unreadable",) if names == UNREADABLE else names


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _plain_or_text(value: object) -> object:
    return _plain(value) if isinstance(value, Mapping | set | frozenset) else str(value)


def kept_text(text: str, most: int) -> str:
    """Cut a foreign text, and replace characters that a database cannot store."""
    return text[:most].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


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
        self._marked: type[MarkedRow] = type(f"Unreadable{kind.__name__}", (kind, MarkedRow), {})
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
        mark_unreadable(marked, UnreadableEntry(row[self._key], "; ".join(wrong)))
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
