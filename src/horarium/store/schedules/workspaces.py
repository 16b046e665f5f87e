"""The schedules of a workspace, which is the agent that their prompts go to: pages of them, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.database.page_bytes import Row, page, sized
from horarium.store.schedules.rows import ROWS, SELECT_WITH_DOCUMENT, ScheduleRow, listed_with_document, with_document
from horarium.store.tables import schedule_revisions, schedules

API: Final = "api"
"""Every surface but a workspace: the API, the command line, bundles and templates."""
WORKSPACE: Final = "workspace"
Found = tuple[ScheduleRow, dict[str, Any]]
_SIZED = sized(SELECT_WITH_DOCUMENT, schedule_revisions.c.document)
_DOCUMENT = len(_SIZED.selected_columns) - 2  # before its size
_UID, _REVISION = ROWS.place_of("schedule_uid"), ROWS.place_of("revision")


def list_page(
    connection: Connection, namespace: str, workspace: str, *, after: ScheduleRow | None, limit: int
) -> tuple[list[Found], bool]:
    """With their newest documents, as many as fit in a page; and whether there are more."""
    statement = _SIZED.where(*_live(namespace, workspace))
    if after is not None:
        here, there = schedules.c.created_at, after.created_at
        statement = statement.where(here >= there, sa.or_(here > there, schedules.c.schedule_uid > after.schedule_uid))
    ordered = statement.order_by(schedules.c.created_at, schedules.c.schedule_uid).limit(limit + 1)
    rows, more = page(connection.execute(ordered).all(), limit, _DOCUMENT, _load(connection))
    return [listed_with_document(row) for row in rows], more


def find(connection: Connection, namespace: str, workspace: str, schedule_id: str) -> Found | None:
    own = (*_live(namespace, workspace), schedules.c.schedule_id == schedule_id)
    row = connection.execute(SELECT_WITH_DOCUMENT.where(*own)).one_or_none()
    return None if row is None else with_document(row)


def has_name(connection: Connection, namespace: str, workspace: str, name: str, *, beside: str | None = None) -> bool:
    """Tell whether a schedule of the workspace other than `beside` has this name."""
    own = [*_live(namespace, workspace), schedules.c.name == name]
    if beside is not None:
        own.append(schedules.c.schedule_id != beside)
    return connection.execute(sa.select(schedules.c.schedule_id).where(*own).limit(1)).first() is not None


class Key(NamedTuple):
    """Sort keys of the schedules of a namespace, for views of all of them."""

    schedule_uid: bytes
    schedule_id: str
    name: str
    workspace: str | None
    created_at: Instant


def keys(connection: Connection, namespace: str, most: int) -> list[Key]:
    """Keys of the live schedules of a namespace, in no order."""
    columns = [schedules.c[name] for name in Key._fields]
    own = (schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    return [Key(*row) for row in connection.execute(sa.select(*columns).where(*own).limit(most))]


def _live(namespace: str, workspace: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        schedules.c.namespace == namespace,
        schedules.c.workspace == workspace,
        schedules.c.deleted_at.is_(None),
    )


def _load(connection: Connection) -> Callable[[Sequence[Row]], Mapping[Row, Any]]:
    """Documents that were too large to come with their rows."""
    key = sa.tuple_(schedule_revisions.c.schedule_uid, schedule_revisions.c.revision)

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_key = {(row[_UID], row[_REVISION]): row for row in rows}
        columns = (schedule_revisions.c.schedule_uid, schedule_revisions.c.revision, schedule_revisions.c.document)
        found = connection.execute(sa.select(*columns).where(key.in_(list(by_key))))
        return {by_key[uid, revision]: document for uid, revision, document in found}

    return load


# ── the surface that created one ─────────────────────────────────────────────────────────────────────


def set_written_here(connection: Connection, namespace: str, schedule_id: str) -> None:
    """Record that a schedule was created through its workspace."""
    mine = (schedules.c.namespace == namespace, schedules.c.schedule_id == schedule_id)
    statement = sa.update(schedules).where(*mine, schedules.c.deleted_at.is_(None))
    connection.execute(statement.values(written_by=WORKSPACE))


def is_written_here(connection: Connection, row: ScheduleRow) -> bool:
    """Check whether the schedule was created through its workspace."""
    statement = sa.select(schedules.c.written_by).where(schedules.c.schedule_uid == row.schedule_uid)
    return connection.execute(statement).scalar_one_or_none() == WORKSPACE
