"""Calls about agents, teams and assignments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.features.agents.model import (
    Agent,
    AgentChecked,
    AgentDeleted,
    Assignment,
    AssignmentDeleted,
    Team,
    TeamDeleted,
)
from horarium.features.tenants.model import IssuedToken
from horarium.platform.client.call import Call, Method, Page, Pages, When, given, if_match, many, one

Document = Mapping[str, Any]

AGENTS, AGENT = "/api/agents", "/api/agents/{agent_id}"
TEAMS, TEAM = "/api/teams", "/api/teams/{team_id}"
ASSIGNMENTS, ASSIGNMENT = "/api/assignments", "/api/assignments/{assignment_id}"


class AssigneeCalls:
    """Calls about agents, teams and assignments. `put_…` replaces a document, `patch_…` updates single fields."""

    @Method
    @staticmethod
    def list_agents(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Agent]]:
        """List agents by ID."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", AGENTS, many(Agent, "agents"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_agent(document: Document | None = None, /, **fields: Any) -> Call[Agent]:
        """Create an agent. Raises AgentAlreadyExists."""
        return Call("POST", AGENTS, one(Agent), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_agent(agent_id: str) -> Call[Agent]:
        """Show an agent with its active runs."""
        return Call("GET", AGENT, one(Agent), {"agent_id": agent_id})

    @Method
    @staticmethod
    def put_agent(
        agent_id: str, document: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Agent]:
        """Create or replace an agent. An omitted token is kept."""
        body = {**(document or {}), **fields}
        return Call("PUT", AGENT, one(Agent), {"agent_id": agent_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_agent(
        agent_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Agent]:
        """Merge into the document (RFC 7396): omitted fields are kept, None restores the default."""
        body = {**(changes or {}), **fields}
        return Call("PATCH", AGENT, one(Agent), {"agent_id": agent_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_agent(
        agent_id: str, *, purge: bool | None = None, force: bool | None = None, dry_run: bool | None = None
    ) -> Call[AgentDeleted]:
        """Delete an agent and pause its schedules; with `purge`, delete them. Raises AgentInUse unless `force` is set.
        `dry_run` only lists the schedules.
        """
        query = {"purge": purge, "force": force, "dry_run": dry_run}
        return Call("DELETE", AGENT, one(AgentDeleted), {"agent_id": agent_id}, query=query)

    @Method
    @staticmethod
    def check_agent(agent_id: str) -> Call[AgentChecked]:
        """Let the server fetch the agent card. An unreachable agent is a result, not an error."""
        return Call("POST", f"{AGENT}/check", one(AgentChecked), {"agent_id": agent_id}, idempotent=False)

    @Method
    @staticmethod
    def create_agent_token(
        agent_id: str, *, name: str | None = None, expires_at: When | None = None
    ) -> Call[IssuedToken]:
        """Create a token for the agent. The secret is returned only once."""
        body = given(name=name, expires_at=expires_at)
        # The answer is a secret, which a server must not keep for a repetition: it is not repeated.
        return Call("POST", f"{AGENT}/tokens", one(IssuedToken), {"agent_id": agent_id}, body=body, idempotent=False)

    @Method
    @staticmethod
    def list_teams(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Team]]:
        """List teams by ID."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", TEAMS, many(Team, "teams"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_team(document: Document | None = None, /, **fields: Any) -> Call[Team]:
        """Create a team. Raises TeamAlreadyExists."""
        return Call("POST", TEAMS, one(Team), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_team(team_id: str) -> Call[Team]:
        return Call("GET", TEAM, one(Team), {"team_id": team_id})

    @Method
    @staticmethod
    def put_team(
        team_id: str, document: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Team]:
        """Create or replace a team."""
        body = {**(document or {}), **fields}
        return Call("PUT", TEAM, one(Team), {"team_id": team_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_team(
        team_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Team]:
        """Merge into the document (RFC 7396): omitted fields are kept, None restores the default."""
        body = {**(changes or {}), **fields}
        return Call("PATCH", TEAM, one(Team), {"team_id": team_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_team(team_id: str) -> Call[TeamDeleted]:
        """Delete a team. Raises TeamInUse while an assignment or a schedule uses it."""
        return Call("DELETE", TEAM, one(TeamDeleted), {"team_id": team_id})

    @Method
    @staticmethod
    def list_assignments(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Assignment]]:
        """List assignments by ID."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", ASSIGNMENTS, many(Assignment, "assignments"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_assignment(document: Document | None = None, /, **fields: Any) -> Call[Assignment]:
        """Create an assignment. Raises AssignmentAlreadyExists."""
        return Call("POST", ASSIGNMENTS, one(Assignment), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_assignment(assignment_id: str) -> Call[Assignment]:
        return Call("GET", ASSIGNMENT, one(Assignment), {"assignment_id": assignment_id})

    @Method
    @staticmethod
    def put_assignment(
        assignment_id: str, document: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Assignment]:
        """Create or replace an assignment. Applies to runs created from now on."""
        names = {"assignment_id": assignment_id}
        body = {**(document or {}), **fields}
        return Call("PUT", ASSIGNMENT, one(Assignment), names, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_assignment(
        assignment_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Assignment]:
        """Merge into the document (RFC 7396): omitted fields are kept, None restores the default."""
        body = {**(changes or {}), **fields}
        return Call(
            "PATCH",
            ASSIGNMENT,
            one(Assignment),
            {"assignment_id": assignment_id},
            body=body,
            headers=if_match(if_version),
        )

    @Method
    @staticmethod
    def delete_assignment(assignment_id: str) -> Call[AssignmentDeleted]:
        """Delete an assignment. Raises AssignmentInUse while a schedule runs it."""
        return Call("DELETE", ASSIGNMENT, one(AssignmentDeleted), {"assignment_id": assignment_id})

    iter_agents = Pages(list_agents)
    iter_teams = Pages(list_teams)
    iter_assignments = Pages(list_assignments)
