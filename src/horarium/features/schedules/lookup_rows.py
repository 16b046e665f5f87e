"""SQL that looks up schedules: by what they refer to, by workspace, and their revisions with authors.

A definition refers to workflows, calendars and secrets. A workspace is the agent that prompts go to; its schedules are
listed oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.checks import SECRET_KEY
from horarium.core.document.states import EventType
from horarium.features.schedules.rows import (
    REVISIONS,
    ROWS,
    SELECT_WITH_DOCUMENT,
    RevisionRow,
    ScheduleRow,
    listed_with_document,
    with_document,
)
from horarium.instant import Instant
from horarium.platform.database.statements import (
    Row,
    cycle_from_text,
    from_text,
    object_from_text,
    page_within_bytes,
    sized,
    to_text,
)
from horarium.platform.database.tables import history, schedule_revisions, schedules, workflows


@dataclass(frozen=True, slots=True)
class WorkflowReference:
    """`cycle` are the nodes of one, where the graph has one."""

    version: int
    owner: str | None
    cycle: tuple[str, ...] = ()


_NEWEST_WORKFLOW = (
    sa.select(workflows.c.version, workflows.c.owner, workflows.c.cycle)
    .where(workflows.c.namespace == sa.bindparam("namespace"), workflows.c.workflow_id == sa.bindparam("workflow_id"))
    .order_by(workflows.c.version.desc())
    .limit(1)
)


def newest_workflow(connection: Connection, namespace: str, workflow_id: str) -> WorkflowReference | None:
    asked = {"namespace": namespace, "workflow_id": workflow_id}
    found = connection.execute(_NEWEST_WORKFLOW, asked).one_or_none()
    if found is None:
        return None
    return WorkflowReference(found.version, found.owner, () if found.cycle is None else cycle_from_text(found.cycle))


def workflow_author(
    connection: Connection, namespace: str, workflow_id: str
) -> tuple[dict[str, Any], str | None] | None:
    """The newest document, and who put it."""
    mine = (workflows.c.namespace == namespace, workflows.c.workflow_id == workflow_id)
    newest = sa.select(workflows.c.document, workflows.c.created_by).where(*mine).order_by(workflows.c.version.desc())
    found = connection.execute(newest.limit(1)).one_or_none()
    return None if found is None else (from_text(found.document), found.created_by)


def schedules_with_calendar(connection: Connection, namespace: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Live schedules that name one of the calendars: (schedule id, calendar)."""
    newest = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    # The text narrows the search; the document decides.
    mentioned = sa.or_(*(schedule_revisions.c.document.contains(f'"{name}"', autoescape=True) for name in names))
    rows = connection.execute(
        sa.select(schedules.c.schedule_id, schedule_revisions.c.document)
        .join_from(schedules, schedule_revisions, newest)
        .where(schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None), mentioned)
        .order_by(schedules.c.schedule_id)
    )
    wanted = set(names)
    return [
        (schedule_id, name)
        for schedule_id, document in rows
        for name in from_text(document).get("calendars", ())
        if name in wanted
    ]


def schedules_with_secret(connection: Connection, namespace: str, name: str, *, most: int) -> list[str]:
    """Live schedules that name the secret, by id; the first of them."""
    newest = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    # Documents are kept as `to_text` spells them, and quotes inside of a text have a backslash: this is a reference.
    spelled = f"{to_text(SECRET_KEY)}:{to_text(name)}"
    statement = (
        sa.select(schedules.c.schedule_id)
        .join_from(schedules, schedule_revisions, newest)
        .where(
            schedules.c.namespace == namespace,
            schedules.c.deleted_at.is_(None),
            schedule_revisions.c.document.contains(spelled, autoescape=True),
        )
        .order_by(schedules.c.schedule_id)
        .limit(most)
    )
    return list(connection.execute(statement).scalars())


_SIZED_REVISIONS = sized(REVISIONS.select, schedule_revisions.c.document)
# Events are found by their number alone: of a schedule that fires each second half a day, of others months.
_LOOKED_AT = 50_000
_WRITING = (EventType.CREATED.value, EventType.UPDATED.value)


class Author(NamedTuple):
    """Author and reason of a revision, as far as history has retained them."""

    principal: str | None = None
    reason: str | None = None


def revision_page(
    connection: Connection, uid: bytes, *, before: int | None, limit: int
) -> tuple[list[RevisionRow], bool]:
    """Newest first, as many as fit in a page; and whether there are older ones."""
    mine = [schedule_revisions.c.schedule_uid == uid]
    if before is not None:
        mine.append(schedule_revisions.c.revision < before)
    statement = _SIZED_REVISIONS.where(*mine).order_by(schedule_revisions.c.revision.desc()).limit(limit + 1)
    place = REVISIONS.place_of("revision")

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_number = {row[place]: row for row in rows}
        own = (schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.revision.in_(list(by_number)))
        found = connection.execute(sa.select(schedule_revisions.c.revision, schedule_revisions.c.document).where(*own))
        return {by_number[number]: document for number, document in found}

    rows, more = page_within_bytes(connection.execute(statement).all(), limit, REVISIONS.place_of("document"), load)
    return [REVISIONS.read(row) for row in rows], more


def authors(
    connection: Connection, uid: bytes, revisions: Sequence[RevisionRow], *, next_sequence: int
) -> dict[int, Author]:
    """By revision, as far as the newest events tell. An edit and its event are of one instant; the creation is first.

    What is read of history is about as large as the definitions themselves.
    """
    moments = {each.created_at for each in revisions}
    lately = sa.and_(history.c.recorded_at.in_(sorted(moments)), history.c.sequence >= next_sequence - _LOOKED_AT)
    told = sa.or_(lately, history.c.sequence == 1)
    statement = (
        sa.select(history.c.payload)
        .where(history.c.schedule_uid == uid, history.c.event_type.in_(_WRITING), told)
        .order_by(history.c.sequence.desc())
    )
    found: dict[int, Author] = {}
    for text in connection.execute(statement).scalars():
        payload = object_from_text(text)
        said = payload.get("command_context") or {}
        # The first of several events is the one that made it; the others changed what is no part of a definition.
        if isinstance(number := payload.get("revision"), int):
            found[number] = Author(said.get("principal"), said.get("reason"))
    return found


API: Final = "api"
"""Every surface but a workspace: the API, the command line, bundles and templates."""
WORKSPACE: Final = "workspace"
WorkspaceRow = tuple[ScheduleRow, dict[str, Any]]
_SIZED = sized(SELECT_WITH_DOCUMENT, schedule_revisions.c.document)
_DOCUMENT = len(_SIZED.selected_columns) - 2  # before its size
_UID, _REVISION = ROWS.place_of("schedule_uid"), ROWS.place_of("revision")


def workspace_page(
    connection: Connection, namespace: str, workspace: str, *, after: ScheduleRow | None, limit: int
) -> tuple[list[WorkspaceRow], bool]:
    """With their newest documents, as many as fit in a page; and whether there are more."""
    statement = _SIZED.where(*_live(namespace, workspace))
    if after is not None:
        here, there = schedules.c.created_at, after.created_at
        statement = statement.where(here >= there, sa.or_(here > there, schedules.c.schedule_uid > after.schedule_uid))
    ordered = statement.order_by(schedules.c.created_at, schedules.c.schedule_uid).limit(limit + 1)
    rows, more = page_within_bytes(connection.execute(ordered).all(), limit, _DOCUMENT, _load(connection))
    return [listed_with_document(row) for row in rows], more


def find_in_workspace(connection: Connection, namespace: str, workspace: str, schedule_id: str) -> WorkspaceRow | None:
    own = (*_live(namespace, workspace), schedules.c.schedule_id == schedule_id)
    row = connection.execute(SELECT_WITH_DOCUMENT.where(*own)).one_or_none()
    return None if row is None else with_document(row)


def has_name_in_workspace(
    connection: Connection, namespace: str, workspace: str, name: str, *, beside: str | None = None
) -> bool:
    """Tell whether a schedule of the workspace other than `beside` has this name."""
    own = [*_live(namespace, workspace), schedules.c.name == name]
    if beside is not None:
        own.append(schedules.c.schedule_id != beside)
    return connection.execute(sa.select(schedules.c.schedule_id).where(*own).limit(1)).first() is not None


class WorkspaceKey(NamedTuple):
    """Sort keys of the schedules of a namespace, for views of all of them."""

    schedule_uid: bytes
    schedule_id: str
    name: str
    workspace: str | None
    created_at: Instant


def workspace_keys(connection: Connection, namespace: str, most: int) -> list[WorkspaceKey]:
    """Keys of the live schedules of a namespace, in no order."""
    columns = [schedules.c[name] for name in WorkspaceKey._fields]
    own = (schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    return [WorkspaceKey(*row) for row in connection.execute(sa.select(*columns).where(*own).limit(most))]


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


def set_created_in_workspace(connection: Connection, namespace: str, schedule_id: str) -> None:
    """Record that a schedule was created through its workspace."""
    mine = (schedules.c.namespace == namespace, schedules.c.schedule_id == schedule_id)
    statement = sa.update(schedules).where(*mine, schedules.c.deleted_at.is_(None))
    connection.execute(statement.values(written_by=WORKSPACE))


def is_created_in_workspace(connection: Connection, row: ScheduleRow) -> bool:
    """Check whether the schedule was created through its workspace."""
    statement = sa.select(schedules.c.written_by).where(schedules.c.schedule_uid == row.schedule_uid)
    return connection.execute(statement).scalar_one_or_none() == WORKSPACE
