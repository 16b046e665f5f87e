"""What a definition refers to, as far as writing it must know: workflows, calendars and secrets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.schedule.secret import KEY
from horarium.store.database.json_text import cycle_from_text, from_text, to_text
from horarium.store.tables import schedule_revisions, schedules, workflows


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
    spelled = f"{to_text(KEY)}:{to_text(name)}"
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
