"""SQL that lists schedules: filtered pages of a namespace, newest first, and counts by status."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.states import Status
from horarium.features.history.rows import told_from
from horarium.features.schedules.health_rows import sign
from horarium.features.schedules.rows import ROWS, SELECT_WITH_DOCUMENT, ScheduleRow, listed_with_document
from horarium.features.schedules.write_rows import Attribute
from horarium.instant import Instant
from horarium.platform.database.statements import Row, page_within_bytes, sized, within_scope
from horarium.platform.database.tables import positions, schedule_attributes, schedule_revisions, schedules


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of the page before."""

    created_at: Instant
    schedule_id: str


@dataclass(frozen=True, slots=True)
class Filter:
    """None = any. A schedule must have all the `attributes`; `text` is part of its id or name.

    `health`: those of which the word may hold at `now`, under the setting `failing_after`. `mentions`: those whose
    document has each of these pieces of JSON somewhere. The caller judges them.
    """

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    bundle: str | None = None
    text: str | None = None
    schedule_id: str | None = None
    schedule_ids: Collection[str] | None = None
    attributes: Collection[Attribute] = ()
    include_deleted: bool = False
    health: HealthStatus | None = None
    now: Instant = 0
    failing_after: int = 0
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """`documents` are the newest of the rows, in their order. `after` is where the next page begins; None = nowhere."""

    rows: tuple[ScheduleRow, ...]
    documents: tuple[dict[str, Any], ...]
    after: Cursor | None


EVERYTHING = Filter()


def list_page(
    connection: Connection, namespace: str, wanted: Filter = EVERYTHING, *, after: Cursor | None = None, limit: int
) -> SchedulePage:
    """By creation, newest first, then by id: a row that is there all the time is shown once."""
    values = {"namespace": namespace, "most": limit + 1, **_values(wanted)}
    if after is not None:
        values |= {"created_at": after.created_at, "after_id": after.schedule_id}
    statement = _statement(_Shape.of(wanted, after))
    found = connection.execute(statement, values).all()
    rows, more = page_within_bytes(found, limit, _DOCUMENT, _load_documents(connection))
    shown = [listed_with_document(each) for each in rows]
    following = Cursor(shown[-1][0].created_at, shown[-1][0].schedule_id) if more and shown else None
    return SchedulePage(tuple(row for row, _ in shown), tuple(document for _, document in shown), following)


def newest_uids(connection: Connection, *, before: bytes | None, limit: int) -> list[bytes]:
    """Return the uids of live schedules of all namespaces, newest first."""
    live = sa.select(schedules.c.schedule_uid).where(
        within_scope(schedules.c.namespace, None), schedules.c.deleted_at.is_(None)
    )
    if before is not None:
        live = live.where(schedules.c.schedule_uid < before)
    return list(connection.execute(live.order_by(schedules.c.schedule_uid.desc()).limit(limit)).scalars())


class Holding(NamedTuple):
    """Counts of one schedule's active and buffered runs."""

    planning: bytes
    status: Status
    active: int
    held: int


def holding(connection: Connection, namespace: str, wanted: Filter, *, held_only: bool, limit: int) -> list[Holding]:
    """Counts of all matching schedules, at most `limit`, in no order."""
    columns = (positions.c.planning, positions.c.status, positions.c.active, positions.c.held)
    mine = [schedules.c.namespace == sa.bindparam("namespace"), *_conditions(_Shape.of(wanted, None))]
    if held_only:
        mine.append(positions.c.held > 0)
    of_all = sa.select(*columns).join_from(schedules, positions, positions.c.schedule_uid == schedules.c.schedule_uid)
    rows = connection.execute(of_all.where(*mine).limit(limit), {"namespace": namespace, **_values(wanted)})
    return [Holding(row.planning, Status(row.status), row.active, row.held) for row in rows if row.status in _STATUSES]


_STATUSES = frozenset(Status)


class SelectedSchedule(NamedTuple):
    """Facts of a selected schedule for an agenda; `next_sequence` is the end of its history."""

    schedule_uid: bytes
    schedule_id: str
    name: str
    status: Status
    planning: bytes
    next_sequence: int


def selected(connection: Connection, namespace: str, wanted: Filter, limit: int) -> list[SelectedSchedule]:
    """All matching schedules, at most `limit`, in no order."""
    names = (schedules.c.name, positions.c.status, positions.c.planning, positions.c.next_sequence)
    columns = (schedules.c.schedule_uid, schedules.c.schedule_id, *names)
    mine = [schedules.c.namespace == sa.bindparam("namespace"), *_conditions(_Shape.of(wanted, None))]
    of_all = sa.select(*columns).join_from(schedules, positions, positions.c.schedule_uid == schedules.c.schedule_uid)
    rows = connection.execute(of_all.where(*mine).limit(limit), {"namespace": namespace, **_values(wanted)})
    return [
        SelectedSchedule(uid, name, title, Status(status), *rest)
        for uid, name, title, status, *rest in rows
        if status in _STATUSES  # a list of schedules shows the others as unreadable
    ]


class LaneRow(NamedTuple):
    """The columns of a schedule that the lane of an agenda needs."""

    schedule_id: str
    schedule_uid: bytes
    name: str
    next_sequence: int
    failures_count: int


def for_lanes(
    connection: Connection, namespace: str, wanted: Filter, *, since: Instant, after: str | None, limit: int
) -> list[LaneRow]:
    """Return schedules in the order of their ids; of one id the oldest first, and the live one last.

    Schedules that were deleted before anything of the window can have been decided are left out.
    """
    columns = (
        schedules.c.schedule_id,
        schedules.c.schedule_uid,
        schedules.c.name,
        positions.c.next_sequence,
        positions.c.failures_count,
    )
    mine = [schedules.c.namespace == sa.bindparam("namespace"), *_conditions(_Shape.of(wanted, None))]
    mine.append(sa.or_(schedules.c.deleted_at.is_(None), schedules.c.deleted_at >= told_from(since)))
    if after is not None:
        mine.append(schedules.c.schedule_id > after)
    of_all = sa.select(*columns).join_from(schedules, positions, positions.c.schedule_uid == schedules.c.schedule_uid)
    order = (schedules.c.schedule_id, schedules.c.deleted_at.is_(None), schedules.c.schedule_uid)
    found = connection.execute(
        of_all.where(*mine).order_by(*order).limit(limit), {"namespace": namespace, **_values(wanted)}
    )
    return [LaneRow(*row) for row in found]


def is_there(connection: Connection, namespace: str, cursor: Cursor, *, include_deleted: bool = False) -> bool:
    """Tell whether the row of a cursor is still listed; an id that was used again is another row."""
    listed = sa.true() if include_deleted else schedules.c.deleted_at.is_(None)
    found = connection.execute(
        sa.select(schedules.c.created_at).where(
            schedules.c.namespace == namespace,
            schedules.c.schedule_id == cursor.schedule_id,
            schedules.c.created_at == cursor.created_at,
            listed,
        )
    )
    return found.first() is not None


def has_attribute(connection: Connection, namespace: str, name: str) -> bool:
    """Tell whether any schedule carries a search attribute of this name."""
    found = connection.execute(
        sa.select(schedule_attributes.c.name)
        .where(
            schedule_attributes.c.namespace == namespace,
            schedule_attributes.c.kind == "search_attribute",
            schedule_attributes.c.name == name,
        )
        .limit(1)
    )
    return found.first() is not None


def count_by_status(connection: Connection, namespace: str) -> dict[Status, int]:
    """Every status, also those that none has."""
    statement = (
        sa.select(positions.c.status, sa.func.count())
        .where(positions.c.namespace == namespace)
        .group_by(positions.c.status)
    )
    found = dict(map(tuple, connection.execute(statement)))
    return {status: found.get(status.value, 0) for status in Status}


_COLUMNS = {name: schedules.c[name] for name in ("schedule_id", "workflow", "owner", "source", "bundle")}


# What LIKE takes for more than a letter.
_LIKE = re.compile(r"[%_/]")


def _escaped(found: re.Match[str]) -> str:
    return f"/{found[0]}"


def _part(text: str) -> str:
    return f"%{_LIKE.sub(_escaped, text)}%"


_newest = schedule_revisions.alias("newest")


def _mentions(place: int) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        _newest.c.schedule_uid == schedules.c.schedule_uid,
        _newest.c.revision == schedules.c.revision,
        _newest.c.document.like(sa.bindparam(f"mention{place}"), escape="/"),
    )


_SIZED = sized(SELECT_WITH_DOCUMENT, schedule_revisions.c.document)
_UID, _REVISION = ROWS.place_of("schedule_uid"), ROWS.place_of("revision")
_DOCUMENT = len(_SIZED.selected_columns) - 2  # before its size


def _load_documents(connection: Connection) -> Callable[[Sequence[Row]], Mapping[Row, Any]]:
    """Prepare to load documents of the revisions in the rows; revisions never change."""
    key = sa.tuple_(schedule_revisions.c.schedule_uid, schedule_revisions.c.revision)

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_key = {(row[_UID], row[_REVISION]): row for row in rows}
        columns = (schedule_revisions.c.schedule_uid, schedule_revisions.c.revision, schedule_revisions.c.document)
        found = connection.execute(sa.select(*columns).where(key.in_(list(by_key))))
        return {by_key[uid, revision]: document for uid, revision, document in found}

    return load


class _Shape(NamedTuple):
    """Parts of a list that change its statement: the filters that are set, whatever their values."""

    columns: tuple[str, ...]
    statuses: tuple[Status, ...] | None
    has_text: bool
    attributes: tuple[Attribute, ...]
    include_deleted: bool
    has_ids: bool
    health: HealthStatus | None
    mentions: int
    goes_on: bool

    @classmethod
    def of(cls, wanted: Filter, after: Cursor | None) -> _Shape:
        return cls(
            tuple(name for name in _COLUMNS if getattr(wanted, name) is not None),
            None if wanted.statuses is None else tuple(sorted(wanted.statuses)),
            wanted.text is not None,
            tuple(wanted.attributes),
            wanted.include_deleted,
            wanted.schedule_ids is not None,
            wanted.health,
            len(wanted.mentions),
            after is not None,
        )


def _values(wanted: Filter) -> dict[str, Any]:
    given = {f"wanted_{name}": getattr(wanted, name) for name in _COLUMNS}
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if wanted.text is not None:
        found["part"] = _part(wanted.text.casefold())
    if wanted.schedule_ids is not None:
        found["ids"] = list(wanted.schedule_ids)
    if wanted.health is not None:
        found["now"] = wanted.now
        if wanted.health is HealthStatus.FAILING:
            found["failing_after"] = wanted.failing_after
    return found | {f"mention{place}": _part(each) for place, each in enumerate(wanted.mentions)}


@lru_cache(maxsize=256)  # to build a statement takes longer than to run it
def _statement(shape: _Shape) -> sa.Select[Any]:
    asked = _SIZED.where(schedules.c.namespace == sa.bindparam("namespace"), *_conditions(shape))
    return asked.order_by(schedules.c.created_at.desc(), schedules.c.schedule_id).limit(sa.bindparam("most"))


def _conditions(shape: _Shape) -> Iterator[sa.ColumnElement[bool]]:
    if shape.goes_on:
        last = sa.bindparam("created_at", type_=sa.BigInteger)
        yield schedules.c.created_at <= last  # alone it can walk the index
        yield sa.or_(schedules.c.created_at < last, schedules.c.schedule_id > sa.bindparam("after_id"))
    if not shape.include_deleted:
        yield schedules.c.deleted_at.is_(None)
    if shape.statuses is not None:
        yield positions.c.status.in_([status.value for status in shape.statuses])
    for name in shape.columns:
        yield _COLUMNS[name] == sa.bindparam(f"wanted_{name}")
    if shape.has_ids:
        yield schedules.c.schedule_id.in_(sa.bindparam("ids", expanding=True))
    if shape.health is not None:
        numbers = [sa.bindparam(name, type_=sa.BigInteger) for name in ("now", "failing_after")]
        yield sign(shape.health, sa.bindparam("namespace"), *numbers)
    yield from map(_mentions, range(shape.mentions))
    if shape.has_text:
        yield schedules.c.search_text.like(sa.bindparam("part"), escape="/")
    for attribute in shape.attributes:
        yield schedules.c.schedule_uid.in_(
            sa.select(schedule_attributes.c.schedule_uid).where(
                schedule_attributes.c.namespace == schedules.c.namespace,
                schedule_attributes.c.kind == attribute.kind,
                schedule_attributes.c.name == attribute.name,
                schedule_attributes.c.value == attribute.value,
            )
        )
