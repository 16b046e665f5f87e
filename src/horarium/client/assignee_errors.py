"""Errors of calls about agents, teams and assignments."""

from __future__ import annotations

from horarium.client.error_base import AlreadyExists, Conflict, NotFound


class AgentNotFound(NotFound):
    reason = "agent_not_found"


class TeamNotFound(NotFound):
    reason = "team_not_found"


class AssignmentNotFound(NotFound):
    reason = "assignment_not_found"


class AgentAlreadyExists(AlreadyExists):
    reason = "agent_already_exists"


class TeamAlreadyExists(AlreadyExists):
    reason = "team_already_exists"


class AssignmentAlreadyExists(AlreadyExists):
    reason = "assignment_already_exists"


class AgentInUse(Conflict):
    """A team or an assignment uses the agent."""

    reason = "agent_in_use"


class TeamInUse(Conflict):
    """An assignment or a schedule uses the team."""

    reason = "team_in_use"


class AssignmentInUse(Conflict):
    """A schedule runs the assignment."""

    reason = "assignment_in_use"


class BudgetExceeded(Conflict):
    """The budget of the assignee for today is used up."""

    reason = "budget_exceeded"


MISSING = (AgentNotFound, TeamNotFound, AssignmentNotFound)
REFUSED = (
    AgentAlreadyExists,
    TeamAlreadyExists,
    AssignmentAlreadyExists,
    AgentInUse,
    TeamInUse,
    AssignmentInUse,
    BudgetExceeded,
)
