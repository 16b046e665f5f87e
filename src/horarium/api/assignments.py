"""Routes of assignments: a workflow assigned to an agent or a team, with its policies."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.api.answers import Reply
from horarium.api.audited import Audited
from horarium.api.etags import IfMatch, etag, version_of
from horarium.api.examples import AT
from horarium.api.pages import readable, within_bytes
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import READ, WRITE, Routes
from horarium.instant import to_datetime
from horarium.operations import assignments
from horarium.operations.assignments import ASSIGNMENTS
from horarium.operations.kept_documents import Kept
from horarium.schedule import assignee
from horarium.schedule.assignee import AssigneeType, assignment_document
from horarium.wire.assignees import Assignment, AssignmentBody, AssignmentDeleted, AssignmentList
from horarium.wire.outcomes import WriteOutcome

routes = Routes("/api/assignments", tag="assignments")

_SENT: dict[str, Any] = {
    "assignment_id": "daily-brief-by-writer",
    "workflow_id": "brief",
    "assignee_type": "agent",
    "assignee_id": "writer",
    "approval_policy": {"requires_approval": True},
}
_EXAMPLE = Assignment(
    assignment_id="daily-brief-by-writer",
    workflow_id="brief",
    assignee_type=AssigneeType.AGENT,
    assignee_id="writer",
    approval_policy=_SENT["approval_policy"],
    retry_policy=None,
    failure_policy=None,
    queue_policy=None,
    version=1,
    created_at=AT,
    updated_at=AT,
    outcome=WriteOutcome.CREATED,
)


@routes(
    "GET",
    "",
    needs=READ,
    summary="List assignments",
    answer=AssignmentList,
    example=AssignmentList(assignments=(_EXAMPLE,), next_page_token=None),
)
def list_assignments(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """Sorted by ID."""
    page, shown = within_bytes(
        page_size,
        lambda most: ASSIGNMENTS.list_page(resources, caller, most, next_page_token),
        lambda page: readable(resources, "assignment", page.found, _shown, lambda kept: kept.value.assignment_id),
    )
    return Reply(AssignmentList(assignments=shown, next_page_token=page.next_page_token))


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create an assignment",
    body=AssignmentBody,
    sends=_SENT,
    answer=Assignment,
    status=201,
    example=_EXAMPLE,
)
def create_assignment(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """The workflow and the assignee (an agent or a team) must exist."""
    return _reply(ASSIGNMENTS.create(resources, caller, document), 201)


@routes("GET", "/{assignment_id}", needs=READ, summary="Show an assignment", answer=Assignment, example=_EXAMPLE)
def get_assignment(resources: ResourcesOf, caller: CallerOf, assignment_id: str) -> Reply:
    return _reply(ASSIGNMENTS.get(resources, caller, assignment_id))


@routes(
    "PUT",
    "/{assignment_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create or replace an assignment",
    body=AssignmentBody,
    sends={"workflow_id": "brief", "assignee_type": "agent", "assignee_id": "writer"},
    answer=Assignment,
    also=(201,),
    example=_EXAMPLE,
)
def put_assignment(
    resources: ResourcesOf, caller: CallerOf, assignment_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Replaces the whole assignment. Applies to runs created from now on."""
    kept = ASSIGNMENTS.put(resources, caller, assignment_id, document, if_version=version_of(if_match))
    return _reply(kept, 201 if kept.outcome is WriteOutcome.CREATED else 200)


@routes(
    "PATCH",
    "/{assignment_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Update fields of an assignment",
    body=AssignmentBody,
    sends={"approval_policy": {"requires_approval": False}},
    answer=Assignment,
    example=_EXAMPLE,
)
def patch_assignment(
    resources: ResourcesOf, caller: CallerOf, assignment_id: str, changes: Document, if_match: IfMatch = None
) -> Reply:
    """JSON merge patch (RFC 7396): omitted fields are kept, objects are merged, null restores the default."""
    return _reply(ASSIGNMENTS.patch(resources, caller, assignment_id, changes, if_version=version_of(if_match)))


@routes(
    "DELETE",
    "/{assignment_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete an assignment",
    answer=AssignmentDeleted,
    example=AssignmentDeleted(assignment_id="daily-brief-by-writer", outcome=WriteOutcome.DELETED),
)
def delete_assignment(resources: ResourcesOf, caller: CallerOf, assignment_id: str) -> Reply:
    """Rejected while a schedule runs it."""
    assignments.delete(resources, caller, assignment_id)
    return Reply(AssignmentDeleted(assignment_id=assignment_id, outcome=WriteOutcome.DELETED))


def _reply(kept: Kept[assignee.Assignment], status_code: int = 200) -> Reply:
    return Reply(_shown(kept, kept.outcome), status_code, headers={"ETag": etag(kept.version)})


def _shown(kept: Kept[assignee.Assignment], outcome: WriteOutcome | None = None) -> Assignment:
    given = kept.value
    document = assignment_document(given)
    return Assignment(
        assignment_id=given.assignment_id,
        workflow_id=given.workflow_id,
        assignee_type=given.assignee.type,
        assignee_id=given.assignee.id,
        approval_policy=document.get("approval_policy"),
        retry_policy=document.get("retry_policy"),
        failure_policy=document.get("failure_policy"),
        queue_policy=document.get("queue_policy"),
        version=kept.version,
        created_at=to_datetime(kept.created_at),
        updated_at=to_datetime(kept.updated_at),
        bundle=kept.bundle,
        outcome=outcome,
    )
