"""How teams are kept: agents that share work, by turns or under a lead."""

from __future__ import annotations

from typing import Final

from horarium.errors import InvalidDefinition
from horarium.operations.assignee_errors import TeamAlreadyExists, TeamInUse, TeamNotFound
from horarium.operations.caller import Caller
from horarium.operations.kept_documents import DocumentKind, Written
from horarium.operations.resources import Resources
from horarium.schedule.assignee import Assignee, AssigneeType, Team
from horarium.schedule.document_shapes import TEAM
from horarium.store import assignees
from horarium.store.database import Connection
from horarium.wire.roles import Permission

_USERS_NAMED = 20


def _check(resources: Resources, connection: Connection, caller: Caller, team: Team) -> Written[Team]:
    """All members are agents that there are."""
    known = assignees.AGENTS.find_many(connection, caller.namespace, team.members)
    wrong = {
        f"members.{place}": [f"agent {name!r} not found"]
        for place, name in enumerate(team.members)
        if name not in known
    }
    if wrong:
        raise InvalidDefinition(wrong)
    return Written({"turn": 0})


# A write leaves whose turn it is, as far as there are as many members.
TEAMS: Final = DocumentKind(assignees.TEAMS, TEAM, TeamNotFound, TeamAlreadyExists, _check)


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
            raise TeamInUse(team_id, users, "assign their work to another assignee first")
        assignees.TEAMS.delete(connection, caller.namespace, team_id)

    resources.database.write(work)
