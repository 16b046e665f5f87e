"""Every call about what schedules refer to and about the house itself, described once.

Calendars, workflows, assignments, agents, teams, approvals; tokens, namespaces, the feed, apply and health.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.client.answers import Page
from horarium.client.call import EVENTS, TEXT, Call, When, given, if_match, many, nothing, one
from horarium.client.house_answers import (
    Agent,
    Applied,
    Approval,
    Assignment,
    Calendar,
    ClusterInfo,
    FeedEntry,
    Health,
    IssuedToken,
    Namespace,
    Team,
    Token,
    Workflow,
)
from horarium.client.lenient import A

Document = Mapping[str, Any]

CALENDARS, CALENDAR = "/api/calendars", "/api/calendars/{name}"
WORKFLOWS, WORKFLOW = "/api/workflows", "/api/workflows/{workflow_id}"
ASSIGNMENTS, ASSIGNMENT = "/api/assignments", "/api/assignments/{assignment_id}"
AGENTS, AGENT = "/api/agents", "/api/agents/{agent_id}"
TEAMS, TEAM = "/api/teams", "/api/teams/{team_id}"
TOKENS, TOKEN = "/api/tokens", "/api/tokens/{token_id}"
NAMESPACES, NAMESPACE = "/api/namespaces", "/api/namespaces/{namespace}"


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────


def list_approvals(
    *, status: str | None = None, page_size: int | None = None, next_page_token: str | None = None
) -> Call[Page[Approval]]:
    """The inbox: what waits for a yes or a no."""
    query = {"status": status, "page_size": page_size, "next_page_token": next_page_token}
    return Call("GET", "/api/approvals", many(Approval, "approvals"), query=query, cursor="next_page_token")


# ── calendars ────────────────────────────────────────────────────────────────────────────────────────


def list_calendars() -> Call[Page[Calendar]]:
    """One's own, then the built-in ones."""
    return Call("GET", CALENDARS, many(Calendar, "calendars"))


def create_calendar(document: Document | None = None, /, **fields: Any) -> Call[Calendar]:
    return Call("POST", CALENDARS, one(Calendar), body={**(document or {}), **fields})


def get_calendar(name: str, *, year: int | None = None) -> Call[Calendar]:
    """Also a built-in one, or a rule such as `holidays:US`; with `year`, its days in that year."""
    return Call("GET", CALENDAR, one(Calendar), {"name": name}, query={"year": year})


def update_calendar(
    name: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
) -> Call[Calendar]:
    """What is not said stays."""
    body = {**(changes or {}), **fields}
    return Call("PUT", CALENDAR, one(Calendar), {"name": name}, body=body, headers=if_match(if_version))


def delete_calendar(name: str) -> Call[None]:
    """Raises CalendarInUse while a schedule names it."""
    return Call("DELETE", CALENDAR, nothing, {"name": name})


def clone_calendar(name: str, new_name: str) -> Call[Calendar]:
    """How one begins to change a built-in calendar."""
    return Call("POST", f"{CALENDAR}/clone", one(Calendar), {"name": name}, body={"name": new_name})


# ── workflows, and who does them ─────────────────────────────────────────────────────────────────────


def list_workflows(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Workflow]]:
    return _list(WORKFLOWS, Workflow, "workflows", page_size, next_page_token)


def put_workflow(workflow_id: str, document: Document) -> Call[Workflow]:
    """A new version, unless it is equal to the newest; its schedule triggers become schedules."""
    return Call("PUT", WORKFLOW, one(Workflow), {"workflow_id": workflow_id}, body=document)


def get_workflow(workflow_id: str, *, version: int | str | None = None) -> Call[Workflow]:
    """The newest version unless another is named."""
    return Call("GET", WORKFLOW, one(Workflow), {"workflow_id": workflow_id}, query={"version": version})


def delete_workflow(workflow_id: str) -> Call[None]:
    return Call("DELETE", WORKFLOW, nothing, {"workflow_id": workflow_id})


def validate_workflow(document: Document) -> Call[Workflow]:
    """Raises ValidationFailed with all that is wrong; writes nothing."""
    return Call("POST", f"{WORKFLOWS}/validate", one(Workflow), body=document)


def list_assignments(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Assignment]]:
    return _list(ASSIGNMENTS, Assignment, "assignments", page_size, next_page_token)


def create_assignment(document: Document | None = None, /, **fields: Any) -> Call[Assignment]:
    return Call("POST", ASSIGNMENTS, one(Assignment), body={**(document or {}), **fields})


def get_assignment(assignment_id: str) -> Call[Assignment]:
    return Call("GET", ASSIGNMENT, one(Assignment), {"assignment_id": assignment_id})


def update_assignment(assignment_id: str, changes: Document | None = None, /, **fields: Any) -> Call[Assignment]:
    body = {**(changes or {}), **fields}
    return Call("PUT", ASSIGNMENT, one(Assignment), {"assignment_id": assignment_id}, body=body)


def delete_assignment(assignment_id: str) -> Call[None]:
    return Call("DELETE", ASSIGNMENT, nothing, {"assignment_id": assignment_id})


def list_agents(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Agent]]:
    return _list(AGENTS, Agent, "agents", page_size, next_page_token)


def create_agent(document: Document | None = None, /, **fields: Any) -> Call[Agent]:
    """`id`, `name`, and the `url` at which it is called."""
    return Call("POST", AGENTS, one(Agent), body={**(document or {}), **fields})


def get_agent(agent_id: str) -> Call[Agent]:
    return Call("GET", AGENT, one(Agent), {"agent_id": agent_id})


def update_agent(agent_id: str, changes: Document | None = None, /, **fields: Any) -> Call[Agent]:
    return Call("PUT", AGENT, one(Agent), {"agent_id": agent_id}, body={**(changes or {}), **fields})


def delete_agent(agent_id: str) -> Call[None]:
    return Call("DELETE", AGENT, nothing, {"agent_id": agent_id})


def list_teams(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Team]]:
    return _list(TEAMS, Team, "teams", page_size, next_page_token)


def create_team(document: Document | None = None, /, **fields: Any) -> Call[Team]:
    return Call("POST", TEAMS, one(Team), body={**(document or {}), **fields})


def get_team(team_id: str) -> Call[Team]:
    return Call("GET", TEAM, one(Team), {"team_id": team_id})


def update_team(team_id: str, changes: Document | None = None, /, **fields: Any) -> Call[Team]:
    return Call("PUT", TEAM, one(Team), {"team_id": team_id}, body={**(changes or {}), **fields})


def delete_team(team_id: str) -> Call[None]:
    return Call("DELETE", TEAM, nothing, {"team_id": team_id})


# ── the house ────────────────────────────────────────────────────────────────────────────────────────


def list_tokens() -> Call[Page[Token]]:
    """Without their secrets, which nobody has any more."""
    return Call("GET", TOKENS, many(Token, "tokens"))


def issue_token(
    name: str, role: str, *, subject: str | None = None, expires_at: When | None = None
) -> Call[IssuedToken]:
    """For the client's namespace. The secret is in the answer, and nowhere else."""
    body = {"name": name, "role": role, **given(subject=subject, expires_at=expires_at)}
    # The answer is a secret, which a server must not keep for a repetition: it is not repeated.
    return Call("POST", TOKENS, one(IssuedToken), body=body, idempotent=False)


def revoke_token(token_id: str) -> Call[None]:
    return Call("DELETE", TOKEN, nothing, {"token_id": token_id})


def list_namespaces() -> Call[Page[Namespace]]:
    return Call("GET", NAMESPACES, many(Namespace, "namespaces"))


def create_namespace(namespace: str, *, description: str | None = None) -> Call[Namespace]:
    body = {"namespace": namespace, **given(description=description)}
    return Call("POST", NAMESPACES, one(Namespace), body=body)


def get_namespace(namespace: str) -> Call[Namespace]:
    return Call("GET", NAMESPACE, one(Namespace), {"namespace": namespace})


def get_feed(
    *, after: str | None = None, page_size: int | None = None, next_page_token: str | None = None
) -> Call[Page[FeedEntry]]:
    """What happened in the namespace, newest first; after the entry with the id `after`, oldest first."""
    query = {"after": after, "page_size": page_size, "next_page_token": next_page_token}
    return Call("GET", "/api/feed", many(FeedEntry, "entries"), query=query, cursor="next_page_token")


def events(*, last_event_id: str | None = None) -> Call[FeedEntry]:
    """The feed as a stream; `parse` reads the data of one event."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    return Call("GET", "/api/events", one(FeedEntry), headers=headers, accept=EVENTS)


def apply(bundle: Document, *, dry_run: bool | None = None) -> Call[Applied]:
    """Bring schedules, calendars and workflows into the state that a bundle describes."""
    return Call("POST", "/api/apply", one(Applied), body={**bundle, **given(dry_run=dry_run)})


def cluster_info() -> Call[ClusterInfo]:
    """Which server this is, and what it speaks."""
    return Call("GET", "/api/cluster/info", one(ClusterInfo))


def health() -> Call[Health]:
    return Call("GET", "/healthz", one(Health), also=(503,))


def readiness() -> Call[Health]:
    """Whether the service does its work; one that does not is an answer, not an error."""
    return Call("GET", "/readyz", one(Health), also=(503,))


def liveness() -> Call[Health]:
    return Call("GET", "/livez", one(Health))


def metrics() -> Call[str]:
    """In the text format of Prometheus."""
    return Call("GET", "/metrics", str, accept=TEXT)


def _list(path: str, kind: type[A], member: str, page_size: int | None, token: str | None) -> Call[Page[A]]:
    query = {"page_size": page_size, "next_page_token": token}
    return Call("GET", path, many(kind, member), query=query, cursor="next_page_token")
