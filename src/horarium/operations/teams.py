"""How teams are kept: agents that share work, by turns or under a lead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from horarium.errors import InvalidDefinition
from horarium.operations.assignee_errors import TeamAlreadyExists, TeamInUse, TeamNotFound
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.kept_documents import DocumentKind, Kept, KeptPage, Written
from horarium.operations.resources import Resources
from horarium.schedule.assignee import Assignee, AssigneeType, Team, parse_team, team_document
from horarium.store import assignees
from horarium.store.database import Connection
from horarium.wire.roles import Permission

TEAMS: Final = DocumentKind(assignees.TEAMS, "team_id", parse_team, team_document, TeamNotFound, TeamAlreadyExists)
_USERS_NAMED = 20


def list_teams(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> KeptPage[Team]:
    return TEAMS.list_page(resources, caller, page_size, next_page_token)


def get(resources: Resources, caller: Caller, team_id: str) -> Kept[Team]:
    caller.require(Permission.READ)

    def look(connection: Connection) -> Kept[Team]:
        require_namespace(connection, caller.namespace)
        return TEAMS.kept(TEAMS.find(connection, caller, team_id))

    return resources.database.read(look)


def create(resources: Resources, caller: Caller, document: Mapping[str, Any]) -> Kept[Team]:
    return TEAMS.create(resources, caller, document, _check)


def put(
    resources: Resources, caller: Caller, team_id: str, document: Mapping[str, Any], *, if_version: int | None = None
) -> Kept[Team]:
    """Whose turn it is stays, as far as there are as many members."""
    return TEAMS.put(resources, caller, team_id, document, _check, if_version=if_version)


def delete(resources: Resources, caller: Caller, team_id: str) -> None:
    """Refused while an assignment or a schedule names it."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        TEAMS.find(connection, caller, team_id, lock=True)
        mine = [Assignee(AssigneeType.TEAM, team_id)]
        found = assignees.assignments_of(connection, caller.namespace, mine, _USERS_NAMED)
        users = [f"assignment {name}" for name in found]
        found = assignees.schedules_of(connection, caller.namespace, mine, _USERS_NAMED)
        users += [f"schedule {name}" for name in found]
        if users:
            raise TeamInUse(team_id, users, "give their work to somebody else first")
        assignees.TEAMS.delete(connection, caller.namespace, team_id)

    resources.database.write(work)


def _check(resources: Resources, connection: Connection, caller: Caller, team: Team) -> Written[Team]:
    """All members are agents that there are."""
    known = assignees.AGENTS.find_many(connection, caller.namespace, team.members)
    wrong = {
        f"members.{place}": [f"there is no agent {name!r}"]
        for place, name in enumerate(team.members)
        if name not in known
    }
    if wrong:
        raise InvalidDefinition(wrong)
    return Written({"turn": 0})
