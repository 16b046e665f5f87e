"""Bodies and responses of agents, teams and assignments, and errors of their operations. No response contains the token
of an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from horarium.core.document.assignee import AgentContext, AgentProtocol, AgentSchedules, AssigneeType, TeamStrategy
from horarium.platform.bodies import Body
from horarium.platform.errors import AlreadyExists, NotFound, OperationRefused
from horarium.platform.wire import Answer, Object, Rows, Time, WriteOutcome


class AgentBody(Body, frozen=True, kw_only=True):
    """An agent. A write replaces the whole agent, except `token`: omitted keeps it, null removes it.

    `policies` contains `approval_policy`, `retry_policy`, `failure_policy`, `limits` and `budget`. `allowed_hosts`:
    hosts to which the agent card may refer in addition to the host of `url`; the token is never sent to them.
    `schedules`: schedules of its workspace that the agent's own token may change and delete: `own` (default; created
    through the workspace), `all` or `none`.
    """

    OTHER_NAMES: ClassVar = {"agent_id": "id"}

    id: str | None = None
    name: str | None = None
    url: str | None = None
    parent_id: str | None = None
    capacity: int | None = None
    token: str | None = None
    protocol: AgentProtocol | None = None
    context: AgentContext | None = None
    policies: Object | None = None
    native_scheduler: bool | None = None
    allowed_hosts: tuple[str, ...] | None = None
    schedules: AgentSchedules | None = None

    def __repr__(self) -> str:
        return "AgentBody(…)"


class TeamBody(Body, frozen=True, kw_only=True):
    """A team. `members` are agent IDs in rotation order. `budget` may also be in `policies`."""

    OTHER_NAMES: ClassVar = {"id": "team_id"}

    team_id: str | None = None
    name: str | None = None
    members: tuple[str, ...] | None = None
    lead: str | None = None
    strategy: TeamStrategy | None = None
    policies: Object | None = None
    budget: Object | None = None


class AssignmentBody(Body, frozen=True, kw_only=True):
    """An assignment. Omitted policies come from the agent or team, or from the defaults of the server."""

    OTHER_NAMES: ClassVar = {"id": "assignment_id"}

    assignment_id: str | None = None
    workflow_id: str | None = None
    assignee_type: AssigneeType | None = None
    assignee_id: str | None = None
    approval_policy: Object | None = None
    retry_policy: Object | None = None
    failure_policy: Object | None = None
    queue_policy: Object | None = None


class AgentCard(Answer, frozen=True, kw_only=True):
    """The agent card, as published by the agent."""

    name: str
    version: str | None = None
    protocol: str | None = None


class Agent(Answer, frozen=True, kw_only=True):
    """An agent. Lists omit `active_runs` and `children`.

    `card` is null until it was fetched; `card_at` is the time of the last attempt and `card_error` its error.
    `last_seen_at`: time of the last response or queue claim of the agent.
    """

    id: str
    name: str
    url: str | None
    parent_id: str | None
    capacity: int
    has_token: bool
    protocol: AgentProtocol
    context: AgentContext
    policies: Object
    native_scheduler: bool
    allowed_hosts: tuple[str, ...]
    schedules: AgentSchedules
    last_seen_at: Time | None
    card: AgentCard | None
    card_at: Time | None
    card_error: str | None
    version: int
    created_at: Time
    updated_at: Time
    bundle: str | None = None
    active_runs: int | None = None
    children: tuple[str, ...] | None = None
    outcome: WriteOutcome | None = None
    warnings: tuple[str, ...] = ()


class AgentInterface(Answer, frozen=True, kw_only=True):
    """A URL that the agent card offers. `used`: Horarium may send prompts to it. `why_not`: the cause if it may not."""

    url: str
    dialect: str
    used: bool
    with_token: bool
    why_not: str | None


class AgentChecked(Answer, frozen=True, kw_only=True):
    """Result of fetching an agent card.

    `reachable`: the agent responded, with or without a card. `dialect`: the protocol version in use. Prompts go to the
    first used interface, then to the next ones, and last to the registered URL.
    """

    id: str
    reachable: bool
    card: AgentCard | None
    dialect: str | None
    error: str | None
    interfaces: tuple[AgentInterface, ...]
    etag: str | None
    checked_at: Time


class AgentList(Answer, frozen=True, kw_only=True):
    agents: Rows[Agent]
    next_page_token: str | None


class AgentDeleted(Answer, frozen=True, kw_only=True):
    """A deleted agent, and the schedules that were paused or deleted with it."""

    id: str
    outcome: WriteOutcome
    paused_schedules: tuple[str, ...]
    deleted_schedules: tuple[str, ...]


class Team(Answer, frozen=True, kw_only=True):
    """A team. `lead` null: the first member leads."""

    team_id: str
    name: str
    members: tuple[str, ...]
    lead: str | None
    strategy: TeamStrategy
    policies: Object
    version: int
    created_at: Time
    updated_at: Time
    bundle: str | None = None
    outcome: WriteOutcome | None = None


class TeamList(Answer, frozen=True, kw_only=True):
    teams: Rows[Team]
    next_page_token: str | None


class TeamDeleted(Answer, frozen=True, kw_only=True):
    team_id: str
    outcome: WriteOutcome


class Assignment(Answer, frozen=True, kw_only=True):
    """An assignment. A policy that is null is not set here."""

    assignment_id: str
    workflow_id: str
    assignee_type: AssigneeType
    assignee_id: str
    approval_policy: Object | None
    retry_policy: Object | None
    failure_policy: Object | None
    queue_policy: Object | None
    version: int
    created_at: Time
    updated_at: Time
    bundle: str | None = None
    outcome: WriteOutcome | None = None


class AssignmentList(Answer, frozen=True, kw_only=True):
    assignments: Rows[Assignment]
    next_page_token: str | None


class AssignmentDeleted(Answer, frozen=True, kw_only=True):
    assignment_id: str
    outcome: WriteOutcome


class AgentNotFound(NotFound):
    reason = "agent_not_found"
    what = "agent"


class TeamNotFound(NotFound):
    reason = "team_not_found"
    what = "team"


class AssignmentNotFound(NotFound):
    reason = "assignment_not_found"
    what = "assignment"


class AgentAlreadyExists(AlreadyExists):
    reason = "agent_already_exists"
    what = "agent"


class TeamAlreadyExists(AlreadyExists):
    reason = "team_already_exists"
    what = "team"


class AssignmentAlreadyExists(AlreadyExists):
    reason = "assignment_already_exists"
    what = "assignment"


class AgentInUse(OperationRefused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "agent_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("agent", name, users, way_out))
        self.users = tuple(users)


class TeamInUse(OperationRefused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "team_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("team", name, users, way_out))
        self.users = tuple(users)


class AssignmentInUse(OperationRefused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "assignment_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("assignment", name, users, way_out))
        self.users = tuple(users)


def _still_named(what: str, name: str, users: Sequence[str], way_out: str) -> str:
    shown = ", ".join(users[:5]) + (", …" if len(users) > 5 else "")
    return f"the {what} {name!r} is used by {shown}; {way_out}"
