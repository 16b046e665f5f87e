"""How many bytes each namespace stores: texts by their length, and something for each row around them.

It is counted in pieces in the order of the keys, since a whole table may take longer than a statement is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from horarium.store.tables import (
    calendars,
    history,
    namespace_usage,
    namespaces,
    run_definitions,
    run_events,
    run_logs,
    runs,
    schedule_revisions,
    schedules,
)

_PIECE = 2_000
# What a row takes beside its texts, with its part of the indexes.
_OF_A_RUN, _OF_AN_EVENT, _OF_A_DECISION, _OF_A_REVISION = 600, 60, 150, 400


class Part(Enum):
    """In the order in which they are counted."""

    RUNS = "runs"
    HISTORY = "history"
    DEFINITIONS = "definitions"
    CALENDARS = "calendars"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on: after this key of this part."""

    part: Part
    after: tuple[Any, ...]


BEGIN = Place(Part.RUNS, (b"",))


@dataclass(frozen=True, slots=True)
class Piece:
    """`after` None = this was the last."""

    bytes: Mapping[str, int]
    after: Place | None


def sums(connection: Connection) -> dict[str, int]:
    """What was ever added, by namespace: what comes on top while others count is told from it."""
    added = sa.func.coalesce(sa.func.sum(namespace_usage.c.bytes), 0)
    rows = connection.execute(sa.select(namespace_usage.c.namespace, added).group_by(namespace_usage.c.namespace))
    return {namespace: int(number) for namespace, number in rows}


def save(connection: Connection, found: Mapping[str, int], base: Mapping[str, int]) -> None:
    names = connection.execute(sa.select(namespaces.c.namespace).order_by(namespaces.c.namespace)).scalars().all()
    rows = [{"name": name, "bytes": found.get(name, 0), "added": base.get(name, 0)} for name in names]
    if rows:
        connection.execute(_SAVE, rows)


_SAVE = (
    sa.update(namespaces)
    .where(namespaces.c.namespace == sa.bindparam("name"))
    .values(bytes_stored=sa.bindparam("bytes"), bytes_base=sa.bindparam("added"))
)


def count_some(connection: Connection, place: Place) -> Piece:
    key, count = _PARTS[place.part]
    within = _whole(key) > _values(place.after)
    keys = sa.select(*key).where(within).order_by(*key).offset(_PIECE - 1).limit(1)
    last = connection.execute(keys).one_or_none()
    if last is not None:
        within = sa.and_(within, _whole(key) <= _values(tuple(last)))
    counted = count(connection, within)
    if last is not None:
        return Piece(counted, Place(place.part, tuple(last)))
    order = list(Part)
    following = order[order.index(place.part) + 1 :]
    return Piece(counted, Place(following[0], _FIRST[following[0]]) if following else None)


def _whole(key: Sequence[ColumnElement[Any]]) -> ColumnElement[Any]:
    return key[0] if len(key) == 1 else sa.tuple_(*key)


def _values(key: Sequence[Any]) -> Any:
    return key[0] if len(key) == 1 else sa.tuple_(*map(sa.literal, key))


def _size(connection: Connection, *columns: ColumnElement[Any]) -> ColumnElement[int]:
    """In bytes; of a long text PostgreSQL tells it without reading the text."""

    def of_one(column: ColumnElement[Any]) -> ColumnElement[int]:
        if connection.dialect.name == "postgresql":
            return sa.func.octet_length(column)
        return sa.func.length(sa.cast(column, sa.LargeBinary))

    return sum((sa.func.coalesce(of_one(each), 0) for each in columns), sa.literal(0))


def _add(connection: Connection, counted: Counter[str], statement: sa.Select[Any]) -> None:
    for namespace, number in connection.execute(statement):
        counted[namespace] += int(number)


def _runs(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    counted: Counter[str] = Counter()
    own = _size(connection, runs.c.inputs, runs.c.result, runs.c.error) + _OF_A_RUN
    _add(connection, counted, sa.select(runs.c.namespace, sa.func.sum(own)).where(within).group_by(runs.c.namespace))
    for table, size in (
        (run_events, _size(connection, run_events.c.payload) + _OF_AN_EVENT),
        (run_definitions, _size(connection, run_definitions.c.document)),
        (run_logs, run_logs.c.bytes + _OF_AN_EVENT),
    ):
        _add(
            connection,
            counted,
            sa.select(runs.c.namespace, sa.func.sum(size))
            .join_from(runs, table, table.c.run_id == runs.c.run_id)
            .where(within)
            .group_by(runs.c.namespace),
        )
    return counted


def _history(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    counted: Counter[str] = Counter()
    size = sa.func.sum(_size(connection, history.c.payload) + _OF_A_DECISION)
    _add(connection, counted, sa.select(history.c.namespace, size).where(within).group_by(history.c.namespace))
    return counted


def _definitions(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    """Of schedules by their uid, each with all its revisions."""
    counted: Counter[str] = Counter()
    size = sa.func.sum(_size(connection, schedule_revisions.c.document) + _OF_A_REVISION)
    _add(
        connection,
        counted,
        sa.select(schedules.c.namespace, size)
        .join_from(schedules, schedule_revisions, schedule_revisions.c.schedule_uid == schedules.c.schedule_uid)
        .where(within)
        .group_by(schedules.c.namespace),
    )
    return counted


def _calendars(connection: Connection, within: ColumnElement[bool]) -> Counter[str]:
    counted: Counter[str] = Counter()
    size = sa.func.sum(_size(connection, calendars.c.document) + _OF_A_REVISION)
    _add(connection, counted, sa.select(calendars.c.namespace, size).where(within).group_by(calendars.c.namespace))
    return counted


_Count = Callable[[Connection, ColumnElement[bool]], Counter[str]]
_PARTS: Mapping[Part, tuple[tuple[ColumnElement[Any], ...], _Count]] = {
    Part.RUNS: ((runs.c.run_id,), _runs),
    Part.HISTORY: ((history.c.feed_id,), _history),
    Part.DEFINITIONS: ((schedules.c.schedule_uid,), _definitions),
    Part.CALENDARS: ((calendars.c.namespace, calendars.c.name), _calendars),
}
_FIRST: Mapping[Part, tuple[Any, ...]] = {
    Part.RUNS: (b"",),
    Part.HISTORY: (0,),
    Part.DEFINITIONS: (b"",),
    Part.CALENDARS: ("", ""),
}
