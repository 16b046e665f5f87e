"""Every call about agents, teams and assignments, described once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.client.call import Call, When, given, if_match, many, one
from horarium.client.methods import Method, Pages
from horarium.client.page import Page
from horarium.wire.assignees import Agent, AgentChecked, AgentDeleted, Assignment, AssignmentDeleted, Team, TeamDeleted
from horarium.wire.service import IssuedToken

Document = Mapping[str, Any]

AGENTS, AGENT = "/api/agents", "/api/agents/{agent_id}"
TEAMS, TEAM = "/api/teams", "/api/teams/{team_id}"
ASSIGNMENTS, ASSIGNMENT = "/api/assignments", "/api/assignments/{assignment_id}"


class AssigneeCalls:
    """`put_…` replaces a document as a whole, `patch_…` changes single fields."""

    @Method
    @staticmethod
    def list_agents(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Agent]]:
        """By id."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", AGENTS, many(Agent, "agents"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_agent(document: Document | None = None, /, **fields: Any) -> Call[Agent]:
        """Raises AgentAlreadyExists."""
        return Call("POST", AGENTS, one(Agent), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_agent(agent_id: str) -> Call[Agent]:
        """With how much it has in hand."""
        return Call("GET", AGENT, one(Agent), {"agent_id": agent_id})

    @Method
    @staticmethod
    def put_agent(
        agent_id: str, document: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Agent]:
        """Made, or replaced as a whole; a token that is not given stays."""
        body = {**(document or {}), **fields}
        return Call("PUT", AGENT, one(Agent), {"agent_id": agent_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_agent(
        agent_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Agent]:
        """Merge into the document (RFC 7396): what is not named stays, None sets a field back."""
        body = {**(changes or {}), **fields}
        return Call("PATCH", AGENT, one(Agent), {"agent_id": agent_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_agent(
        agent_id: str, *, purge: bool | None = None, force: bool | None = None, dry_run: bool | None = None
    ) -> Call[AgentDeleted]:
        """Pause its schedules, or delete them with `purge`. Raises AgentInUse, unless `force` is set.

        `dry_run` only lists the schedules.
        """
        query = {"purge": purge, "force": force, "dry_run": dry_run}
        return Call("DELETE", AGENT, one(AgentDeleted), {"agent_id": agent_id}, query=query)

    @Method
    @staticmethod
    def check_agent(agent_id: str) -> Call[AgentChecked]:
        """The server asks it for its card, and says what it found; that it is not there is an answer too."""
        return Call("POST", f"{AGENT}/check", one(AgentChecked), {"agent_id": agent_id}, idempotent=False)

    @Method
    @staticmethod
    def create_agent_token(
        agent_id: str, *, name: str | None = None, expires_at: When | None = None
    ) -> Call[IssuedToken]:
        """With which the agent comes to the server. The secret is in the answer, and nowhere else."""
        body = given(name=name, expires_at=expires_at)
        # The answer is a secret, which a server must not keep for a repetition: it is not repeated.
        return Call("POST", f"{AGENT}/tokens", one(IssuedToken), {"agent_id": agent_id}, body=body, idempotent=False)

    @Method
    @staticmethod
    def list_teams(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Team]]:
        """By id."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", TEAMS, many(Team, "teams"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_team(document: Document | None = None, /, **fields: Any) -> Call[Team]:
        """Raises TeamAlreadyExists."""
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
        """Made, or replaced as a whole."""
        body = {**(document or {}), **fields}
        return Call("PUT", TEAM, one(Team), {"team_id": team_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_team(
        team_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Team]:
        """Merge into the document (RFC 7396): what is not named stays, None sets a field back."""
        body = {**(changes or {}), **fields}
        return Call("PATCH", TEAM, one(Team), {"team_id": team_id}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_team(team_id: str) -> Call[TeamDeleted]:
        """Raises TeamInUse while an assignment or a schedule names it."""
        return Call("DELETE", TEAM, one(TeamDeleted), {"team_id": team_id})

    @Method
    @staticmethod
    def list_assignments(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Assignment]]:
        """By id."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", ASSIGNMENTS, many(Assignment, "assignments"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_assignment(document: Document | None = None, /, **fields: Any) -> Call[Assignment]:
        """Raises AssignmentAlreadyExists."""
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
        """Made, or replaced as a whole; it holds for runs that are born from now on."""
        names = {"assignment_id": assignment_id}
        body = {**(document or {}), **fields}
        return Call("PUT", ASSIGNMENT, one(Assignment), names, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def patch_assignment(
        assignment_id: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Assignment]:
        """Merge into the document (RFC 7396): what is not named stays, None sets a field back."""
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
        """Raises AssignmentInUse while a schedule stands for it."""
        return Call("DELETE", ASSIGNMENT, one(AssignmentDeleted), {"assignment_id": assignment_id})

    iter_agents = Pages(list_agents)
    iter_teams = Pages(list_teams)
    iter_assignments = Pages(list_assignments)
