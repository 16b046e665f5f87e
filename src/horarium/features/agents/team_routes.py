"""Routes of teams, and of assignments of workflows to agents or teams."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.core.document import assignee
from horarium.core.document.assignee import AssigneeType, TeamStrategy, assignment_document, policies_document
from horarium.features.agents import teams
from horarium.features.agents.model import (
    Assignment,
    AssignmentBody,
    AssignmentDeleted,
    AssignmentList,
    Team,
    TeamBody,
    TeamDeleted,
    TeamList,
)
from horarium.features.agents.teams import ASSIGNMENTS, TEAMS
from horarium.features.documents import StoredDocument
from horarium.instant import to_datetime
from horarium.platform.http.audited import Audited
from horarium.platform.http.examples import AT
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import READ, WRITE, Routes
from horarium.platform.wire import WriteOutcome

routes = Routes("/api/teams", tag="teams")

_TEAM_SENT = {"team_id": "desk", "name": "News desk", "members": ["writer"], "strategy": "round_robin"}
_TEAM = Team(
    team_id="desk",
    name="News desk",
    members=("writer",),
    lead=None,
    strategy=TeamStrategy.ROUND_ROBIN,
    policies={},
    version=1,
    created_at=AT,
    updated_at=AT,
    outcome=WriteOutcome.CREATED,
)


@routes(
    "GET",
    "",
    needs=READ,
    summary="List teams",
    answer=TeamList,
    example=TeamList(teams=(_TEAM,), next_page_token=None),
)
def list_teams(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """Sorted by ID."""
    page, shown = within_bytes(
        page_size,
        lambda most: TEAMS.list_page(resources, caller, most, next_page_token),
        lambda page: readable(resources, "team", page.found, _team, lambda kept: kept.value.team_id),
    )
    return Reply(TeamList(teams=shown, next_page_token=page.next_page_token))


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create a team",
    body=TeamBody,
    sends=_TEAM_SENT,
    answer=Team,
    status=201,
    example=_TEAM,
)
def create_team(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """Its members must be existing agents."""
    return _team_reply(TEAMS.create(resources, caller, document), 201)


@routes("GET", "/{team_id}", needs=READ, summary="Show a team", answer=Team, example=_TEAM)
def get_team(resources: ResourcesOf, caller: CallerOf, team_id: str) -> Reply:
    return _team_reply(TEAMS.get(resources, caller, team_id))


@routes(
    "PUT",
    "/{team_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create or replace a team",
    body=TeamBody,
    sends={"members": ["writer"], "strategy": "lead"},
    answer=Team,
    also=(201,),
    example=_TEAM,
)
def put_team(
    resources: ResourcesOf, caller: CallerOf, team_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Replaces the whole team."""
    kept = TEAMS.put(resources, caller, team_id, document, if_version=version_of(if_match))
    return _team_reply(kept, 201 if kept.outcome is WriteOutcome.CREATED else 200)


@routes(
    "PATCH",
    "/{team_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Update fields of a team",
    body=TeamBody,
    sends={"strategy": "lead"},
    answer=Team,
    example=_TEAM,
)
def patch_team(
    resources: ResourcesOf, caller: CallerOf, team_id: str, changes: Document, if_match: IfMatch = None
) -> Reply:
    """JSON merge patch (RFC 7396): omitted fields are kept, objects are merged, null restores the default."""
    return _team_reply(TEAMS.patch(resources, caller, team_id, changes, if_version=version_of(if_match)))


@routes(
    "DELETE",
    "/{team_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete a team",
    answer=TeamDeleted,
    example=TeamDeleted(team_id="desk", outcome=WriteOutcome.DELETED),
)
def delete_team(resources: ResourcesOf, caller: CallerOf, team_id: str) -> Reply:
    """Rejected while an assignment or a schedule uses it."""
    teams.delete_team(resources, caller, team_id)
    return Reply(TeamDeleted(team_id=team_id, outcome=WriteOutcome.DELETED))


def _team_reply(kept: StoredDocument[assignee.TeamDefinition], status_code: int = 200) -> Reply:
    return Reply(_team(kept, kept.outcome), status_code, headers={"ETag": etag(kept.version)})


def _team(kept: StoredDocument[assignee.TeamDefinition], outcome: WriteOutcome | None = None) -> Team:
    team = kept.value
    return Team(
        team_id=team.team_id,
        name=team.name,
        members=team.members,
        lead=team.lead,
        strategy=team.strategy,
        policies=policies_document(team.policies),
        version=kept.version,
        created_at=to_datetime(kept.created_at),
        updated_at=to_datetime(kept.updated_at),
        bundle=kept.bundle,
        outcome=outcome,
    )


assignment_routes = Routes("/api/assignments", tag="assignments")

_ASSIGNMENT_SENT: dict[str, Any] = {
    "assignment_id": "daily-brief-by-writer",
    "workflow_id": "brief",
    "assignee_type": "agent",
    "assignee_id": "writer",
    "approval_policy": {"requires_approval": True},
}
_ASSIGNMENT = Assignment(
    assignment_id="daily-brief-by-writer",
    workflow_id="brief",
    assignee_type=AssigneeType.AGENT,
    assignee_id="writer",
    approval_policy=_ASSIGNMENT_SENT["approval_policy"],
    retry_policy=None,
    failure_policy=None,
    queue_policy=None,
    version=1,
    created_at=AT,
    updated_at=AT,
    outcome=WriteOutcome.CREATED,
)


@assignment_routes(
    "GET",
    "",
    needs=READ,
    summary="List assignments",
    answer=AssignmentList,
    example=AssignmentList(assignments=(_ASSIGNMENT,), next_page_token=None),
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
        lambda page: readable(resources, "assignment", page.found, _assignment, lambda kept: kept.value.assignment_id),
    )
    return Reply(AssignmentList(assignments=shown, next_page_token=page.next_page_token))


@assignment_routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create an assignment",
    body=AssignmentBody,
    sends=_ASSIGNMENT_SENT,
    answer=Assignment,
    status=201,
    example=_ASSIGNMENT,
)
def create_assignment(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """The workflow and the assignee (an agent or a team) must exist."""
    return _assignment_reply(ASSIGNMENTS.create(resources, caller, document), 201)


@assignment_routes(
    "GET", "/{assignment_id}", needs=READ, summary="Show an assignment", answer=Assignment, example=_ASSIGNMENT
)
def get_assignment(resources: ResourcesOf, caller: CallerOf, assignment_id: str) -> Reply:
    return _assignment_reply(ASSIGNMENTS.get(resources, caller, assignment_id))


@assignment_routes(
    "PUT",
    "/{assignment_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create or replace an assignment",
    body=AssignmentBody,
    sends={"workflow_id": "brief", "assignee_type": "agent", "assignee_id": "writer"},
    answer=Assignment,
    also=(201,),
    example=_ASSIGNMENT,
)
def put_assignment(
    resources: ResourcesOf, caller: CallerOf, assignment_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Replaces the whole assignment. Applies to runs created from now on."""
    kept = ASSIGNMENTS.put(resources, caller, assignment_id, document, if_version=version_of(if_match))
    return _assignment_reply(kept, 201 if kept.outcome is WriteOutcome.CREATED else 200)


@assignment_routes(
    "PATCH",
    "/{assignment_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Update fields of an assignment",
    body=AssignmentBody,
    sends={"approval_policy": {"requires_approval": False}},
    answer=Assignment,
    example=_ASSIGNMENT,
)
def patch_assignment(
    resources: ResourcesOf, caller: CallerOf, assignment_id: str, changes: Document, if_match: IfMatch = None
) -> Reply:
    """JSON merge patch (RFC 7396): omitted fields are kept, objects are merged, null restores the default."""
    return _assignment_reply(
        ASSIGNMENTS.patch(resources, caller, assignment_id, changes, if_version=version_of(if_match))
    )


@assignment_routes(
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
    teams.delete_assignment(resources, caller, assignment_id)
    return Reply(AssignmentDeleted(assignment_id=assignment_id, outcome=WriteOutcome.DELETED))


def _assignment_reply(kept: StoredDocument[assignee.AssignmentDefinition], status_code: int = 200) -> Reply:
    return Reply(_assignment(kept, kept.outcome), status_code, headers={"ETag": etag(kept.version)})


def _assignment(kept: StoredDocument[assignee.AssignmentDefinition], outcome: WriteOutcome | None = None) -> Assignment:
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
