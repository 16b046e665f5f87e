"""How assignments are kept: a workflow given to an agent or a team, with the policies that hold for it."""

from __future__ import annotations

from typing import Final

from horarium.errors import InvalidDefinition
from horarium.operations.assignee_errors import AssignmentAlreadyExists, AssignmentInUse, AssignmentNotFound
from horarium.operations.caller import Caller
from horarium.operations.kept_documents import DocumentKind, Written
from horarium.operations.resources import Resources
from horarium.schedule.assignee import Assignee, AssigneeType, Assignment
from horarium.schedule.document_shapes import ASSIGNMENT
from horarium.store import assignees
from horarium.store.database import Connection
from horarium.store.workflow_graphs import newest_versions
from horarium.wire.roles import Permission

_USERS_NAMED = 20


def _check(resources: Resources, connection: Connection, caller: Caller, given: Assignment) -> Written[Assignment]:
    """Raise InvalidDefinition unless the namespace stores the workflow and the assignee."""
    problems: dict[str, list[str]] = {}
    if not newest_versions(connection, {(caller.namespace, given.workflow_id)}):
        problems["workflow_id"] = [f"workflow {given.workflow_id!r} not found; create it first"]
    unknown = unknown_assignee(connection, caller.namespace, given.assignee)
    if unknown is not None:
        problems["assignee_id"] = [unknown]
    if problems:
        raise InvalidDefinition(problems)
    return Written({})


def unknown_assignee(connection: Connection, namespace: str, assignee: Assignee) -> str | None:
    rows = assignees.AGENTS if assignee.type is AssigneeType.AGENT else assignees.TEAMS
    found = rows.find(connection, namespace, assignee.id)
    return None if found is not None else f"{assignee.type.value} {assignee.id!r} not found"


ASSIGNMENTS: Final = DocumentKind(
    assignees.ASSIGNMENTS, ASSIGNMENT, AssignmentNotFound, AssignmentAlreadyExists, _check
)


def delete(resources: Resources, caller: Caller, assignment_id: str) -> None:
    """Refused while a schedule stands for it: what it demands would no longer hold."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        ASSIGNMENTS.find(connection, caller, assignment_id, lock=True)
        found = assignees.schedules_with_assignments(connection, caller.namespace, [assignment_id], _USERS_NAMED)
        if found:
            raise AssignmentInUse(assignment_id, [f"schedule {name}" for name in found], "edit or delete these first")
        assignees.ASSIGNMENTS.delete(connection, caller.namespace, assignment_id)

    resources.database.write(work)
