"""Routes of teams: agents that share work."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api.answers import Reply
from horarium.api.audited import Audited
from horarium.api.etags import IfMatch, etag, version_of
from horarium.api.examples import AT
from horarium.api.pages import readable, within_bytes
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import READ, WRITE, Routes
from horarium.instant import to_datetime
from horarium.operations import teams
from horarium.operations.kept_documents import Kept
from horarium.operations.teams import TEAMS
from horarium.schedule import assignee
from horarium.schedule.assignee import TeamStrategy
from horarium.schedule.worker_policies import policies_document
from horarium.wire.assignees import Team, TeamBody, TeamDeleted, TeamList
from horarium.wire.outcomes import WriteOutcome

routes = Routes("/api/teams", tag="teams")

_SENT = {"team_id": "desk", "name": "News desk", "members": ["writer"], "strategy": "round_robin"}
_EXAMPLE = Team(
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
    example=TeamList(teams=(_EXAMPLE,), next_page_token=None),
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
        lambda page: readable(resources, "team", page.found, _shown, lambda kept: kept.value.team_id),
    )
    return Reply(TeamList(teams=shown, next_page_token=page.next_page_token))


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create a team",
    body=TeamBody,
    sends=_SENT,
    answer=Team,
    status=201,
    example=_EXAMPLE,
)
def create_team(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """Its members must be existing agents."""
    return _reply(TEAMS.create(resources, caller, document), 201)


@routes("GET", "/{team_id}", needs=READ, summary="Show a team", answer=Team, example=_EXAMPLE)
def get_team(resources: ResourcesOf, caller: CallerOf, team_id: str) -> Reply:
    return _reply(TEAMS.get(resources, caller, team_id))


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
    example=_EXAMPLE,
)
def put_team(
    resources: ResourcesOf, caller: CallerOf, team_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Replaces the whole team."""
    kept = TEAMS.put(resources, caller, team_id, document, if_version=version_of(if_match))
    return _reply(kept, 201 if kept.outcome is WriteOutcome.CREATED else 200)


@routes(
    "PATCH",
    "/{team_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Update fields of a team",
    body=TeamBody,
    sends={"strategy": "lead"},
    answer=Team,
    example=_EXAMPLE,
)
def patch_team(
    resources: ResourcesOf, caller: CallerOf, team_id: str, changes: Document, if_match: IfMatch = None
) -> Reply:
    """JSON merge patch (RFC 7396): omitted fields are kept, objects are merged, null restores the default."""
    return _reply(TEAMS.patch(resources, caller, team_id, changes, if_version=version_of(if_match)))


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
    teams.delete(resources, caller, team_id)
    return Reply(TeamDeleted(team_id=team_id, outcome=WriteOutcome.DELETED))


def _reply(kept: Kept[assignee.Team], status_code: int = 200) -> Reply:
    return Reply(_shown(kept, kept.outcome), status_code, headers={"ETag": etag(kept.version)})


def _shown(kept: Kept[assignee.Team], outcome: WriteOutcome | None = None) -> Team:
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
