"""Which schedules there are: pages of a namespace, newest first, filtered; and how many of each status."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.position import Status
from horarium.store.schedules.rows import ROWS, SELECT_ROWS, ScheduleRow
from horarium.store.schedules.write import Attribute
from horarium.store.tables import positions, schedule_attributes, schedules


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of the page before."""

    created_at: Instant
    schedule_id: str


@dataclass(frozen=True, slots=True)
class Filter:
    """None = any. A schedule must have all the `attributes`; `text` is part of its id or name."""

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    text: str | None = None
    schedule_id: str | None = None
    attributes: Collection[Attribute] = ()
    include_deleted: bool = False


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """`after` is where the next page begins; None = this is the last."""

    rows: tuple[ScheduleRow, ...]
    after: Cursor | None


EVERYTHING = Filter()


def list_page(
    connection: Connection, namespace: str, wanted: Filter = EVERYTHING, *, after: Cursor | None = None, limit: int
) -> SchedulePage:
    """By creation, newest first, then by id: a row that is there all the time is shown once."""
    conditions = [schedules.c.namespace == namespace, *_conditions(wanted)]
    if after is not None:
        conditions.append(schedules.c.created_at <= after.created_at)  # alone it can walk the index
        conditions.append(
            sa.or_(schedules.c.created_at < after.created_at, schedules.c.schedule_id > after.schedule_id)
        )
    statement = (
        SELECT_ROWS.where(*conditions).order_by(schedules.c.created_at.desc(), schedules.c.schedule_id).limit(limit + 1)
    )
    rows = ROWS.all(connection, statement)
    more = len(rows) > limit
    shown = tuple(rows[:limit])
    return SchedulePage(shown, Cursor(shown[-1].created_at, shown[-1].schedule_id) if more else None)


def is_there(connection: Connection, namespace: str, cursor: Cursor, *, include_deleted: bool = False) -> bool:
    """Whether the row of a cursor is still listed; an id that was used again is another row."""
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
    """Whether any schedule carries a search attribute of this name."""
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
    found = {Status(status): count for status, count in connection.execute(statement)}
    return {status: found.get(status, 0) for status in Status}


def _conditions(wanted: Filter) -> Iterator[sa.ColumnElement[bool]]:
    if not wanted.include_deleted:
        yield schedules.c.deleted_at.is_(None)
    if wanted.statuses is not None:
        yield positions.c.status.in_(sorted(status.value for status in wanted.statuses))
    for column in (schedules.c.schedule_id, schedules.c.workflow, schedules.c.owner, schedules.c.source):
        value = getattr(wanted, column.name)
        if value is not None:
            yield column == value
    if wanted.text is not None:
        yield schedules.c.search_text.contains(wanted.text.casefold(), autoescape=True)
    for attribute in wanted.attributes:
        yield schedules.c.schedule_uid.in_(
            sa.select(schedule_attributes.c.schedule_uid).where(
                schedule_attributes.c.namespace == schedules.c.namespace,
                schedule_attributes.c.kind == attribute.kind,
                schedule_attributes.c.name == attribute.name,
                schedule_attributes.c.value == attribute.value,
            )
        )
