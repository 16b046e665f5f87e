"""Set-based statements, typed columns, and counters.

JSON text is compact, has its keys in order, and is read back exactly. The faster library supports neither integers
beyond 64 bits nor lone surrogates; the standard library handles those.

The fields of a class name the columns of a typed row. A column that cannot be read is an error where something is
decided (`read`, `one`, `all`). A list shows such a row beside the others (`listed`): the column holds a stand-in of
its type, and the value says that it is unreadable.

SQLite gets an `executemany` for changes by key. PostgreSQL gets an update as columns in JSON, and rows by binary COPY:
of the ways to hand five hundred rows to it these cost the least (ten times less than arrays as the driver writes them).

A page holds two megabytes, or one row. A row of a list has one column that its writer may fill: a document, a payload.
Small ones come with their row. Of large ones only the size is read first, and then those that fit.

Several schedules share counters: cost and runs of a day, and holders of a concurrency key. A counter is locked after
the positions, and counters in sorted order, so that two transactions never wait for each other. Cost is counted in
millionths of a credit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

import orjson
import sqlalchemy as sa
from sqlalchemy import Column, ColumnElement, Connection, Executable, Select, Table, case, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from horarium.core.document.json_values import UNREADABLE, MarkedRow, UnreadableEntry, damaged, mark_unreadable
from horarium.core.policy.approval import NEVER
from horarium.core.policy.limits import MILLIONTHS
from horarium.instant import DAY, LAST, Instant
from horarium.platform.database.errors import CannotRead
from horarium.platform.database.postgres import copy_rows
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.tables import counters, namespaces, runs
from horarium.platform.ids import id_at

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


def storable_text(text: str, most: int) -> str:
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


def sized(statement: sa.Select[Any], column: sa.ColumnElement[Any]) -> sa.Select[Any]:
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


Counter = tuple[str, str, int]
"""Its kind, its owner and the day."""

# Far below what a column holds: whatever targets say they cost, no sum may keep a run from ending.
_MOST = 2**61
_NOTHING = Decimal(0)


def to_millionths(amount: Decimal) -> int:
    return int(amount * MILLIONTHS)


def to_credits(millionths: int) -> Decimal:
    return Decimal(millionths) / MILLIONTHS if millionths else _NOTHING


def schedule_owner(schedule_uid: bytes) -> str:
    return f"schedule:{schedule_uid.hex()}"


def assignee_owner(namespace: str, payer: str) -> str:
    """`payer` as `core/decision/run_policies.py` names them: an agent by its id, so that older counters stay good."""
    return f"assignee:{namespace} {payer}"


def key_owner(namespace: str, key: str) -> str:
    return f"key:{namespace} {key}"  # no namespace has a blank in it, a key may have anything


def lock_counters(connection: Connection, wanted: Iterable[Counter]) -> dict[Counter, int]:
    """Create what is not there, then lock all in sorted order; returns their values."""
    ordered = sorted(wanted)
    if not ordered:
        return {}
    rows = [{"kind": kind, "owner": owner, "day": day, "value": 0} for kind, owner, day in ordered]
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    connection.execute(insert(counters).on_conflict_do_nothing(), rows)
    return read_counters(connection, ordered, for_update=True)


def read_counters(connection: Connection, wanted: Sequence[Counter], *, for_update: bool = False) -> dict[Counter, int]:
    columns = (counters.c.kind, counters.c.owner, counters.c.day)
    statement = select(counters).order_by(*columns)
    rows = rows_with(connection, statement.with_for_update() if for_update else statement, columns, wanted)
    return {(row.kind, row.owner, row.day): row.value for row in rows}


def add_to_counters(connection: Connection, changes: Mapping[Counter, int]) -> None:
    """Counters that nobody has asked about yet are created on the way. One that is full stays full."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for (kind, owner, day), change in sorted(changes.items()):
        if change == 0:
            continue
        row = insert(counters).values(kind=kind, owner=owner, day=day, value=max(-_MOST, min(_MOST, change)))
        fits = counters.c.value <= _MOST - row.excluded.value
        added = case((fits, counters.c.value + row.excluded.value), else_=_MOST)
        connection.execute(row.on_conflict_do_update(index_elements=["kind", "owner", "day"], set_={"value": added}))


def recount_today(connection: Connection, uid: bytes, now: Instant) -> None:
    """Recount a schedule's runs and costs since midnight UTC, so that a limit added at noon includes the morning."""
    day = now // DAY
    ended = runs.c.state.in_(FINAL_NAMES)
    spent = case((ended, runs.c.cost), else_=runs.c.reserved)
    # Ids are in order of birth, so the index can leave out what is old. They follow the clock of the machine,
    # which may differ from the one that all processes share: the day itself is told by `created_at`.
    counted = connection.execute(
        select(func.count(), func.coalesce(func.sum(spent), 0)).where(
            runs.c.schedule_uid == uid,
            runs.c.parent_run_id.is_(None),
            runs.c.run_id >= id_at((day - 1) * DAY),
            runs.c.created_at >= day * DAY,
        )
    ).one()
    owner = schedule_owner(uid)
    lock_counters(connection, [("runs", owner, day), ("spent", owner, day)])
    for kind, value in (("runs", counted[0]), ("spent", int(counted[1]))):
        connection.execute(
            update(counters)
            .where(counters.c.kind == kind, counters.c.owner == owner, counters.c.day == day)
            .values(value=value)
        )
