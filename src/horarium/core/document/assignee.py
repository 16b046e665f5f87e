"""Assignees of work: agents, teams that send one of their agents, and the policies that agents, teams and assignments
state.

A team that takes turns sends another agent with each run. An assignment fixes policies for a workflow and its
assignee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, TypeVar, assert_never

from horarium.core.document.field import plain
from horarium.core.policy.approval import (
    ApprovalPolicy,
    FailurePolicy,
    RetryPolicy,
    parse_approval_policy,
    parse_failure_policy,
    parse_retry_policy,
)
from horarium.core.policy.limits import Budget, RunLimits, parse_budget, parse_limits, with_exact_amount
from horarium.core.policy.queue import (
    QUEUE_NAMES,
    PolicyError,
    QueuePolicy,
    checked_id,
    parse_name,
    parse_queue_policy,
    read_object,
    shown,
)

# ── Words of an agent ─────────────────────────────────────────────────────────────────────────────────


class AgentProtocol(StrEnum):
    """Version of the A2A protocol."""

    AUTO = "auto"
    V0_3 = "0.3"
    V1_0 = "1.0"


class AgentSchedules(StrEnum):
    """Schedules of its workspace that an agent's own token may change and delete."""

    OWN = "own"  # those that were written through the workspace
    ALL = "all"
    NONE = "none"


class AgentContext(StrEnum):
    """Conversation of each run: a new one, or one shared by the runs of a schedule."""

    FRESH = "fresh"
    SCHEDULE = "schedule"


# ── Policies of agents and teams ──────────────────────────────────────────────────────────────────────


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerPolicies:
    """None = nothing is said, so that whoever comes next may say it."""

    approval: ApprovalPolicy | None = None
    retry: RetryPolicy | None = None
    failure: FailurePolicy | None = None
    limits: RunLimits | None = None
    budget: Budget | None = None


def _limits(value: object) -> RunLimits:
    return parse_limits(with_exact_amount(value, "cost") if isinstance(value, Mapping) else value)


def _budget(value: object) -> Budget:
    exact = with_exact_amount(value, "spending_limit_credits") if isinstance(value, Mapping) else value
    return parse_budget(exact)


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "approval_policy": ("approval", parse_approval_policy),
    "retry_policy": ("retry", parse_retry_policy),
    "failure_policy": ("failure", parse_failure_policy),
    "limits": ("limits", _limits),
    "budget": ("budget", _budget),
}
POLICY_NAMES: Final = tuple(_READERS)


def parse_worker_policies(value: object) -> WorkerPolicies:
    """Raises PolicyError, whose field is the path below `policies`."""
    given = read_object(value, "policies", POLICY_NAMES)
    read = {_READERS[name][0]: read_part(name, _READERS[name][1], said) for name, said in given.items()}
    return WorkerPolicies(**read)


def read_part(name: str, read: Callable[[Any], T], value: object) -> T:
    """Read a part and name it in errors about its contents."""
    try:
        return read(value)
    except PolicyError as wrong:
        raise PolicyError(name if wrong.field == name else f"{name}.{wrong.field}", wrong.text) from None


def policies_document(policies: WorkerPolicies) -> dict[str, Any]:
    found = {name: getattr(policies, attribute) for name, (attribute, _) in _READERS.items()}
    return {name: policy_document(policy) for name, policy in found.items() if policy is not None}


def policy_document(policy: Any) -> dict[str, Any]:
    """JSON form of a policy; reading it gives an equal policy."""
    if isinstance(policy, ApprovalPolicy):
        return policy.document()
    found = {each.name: getattr(policy, each.name) for each in fields(policy) if each.name != "unasked"}
    return {name: plain(value) for name, value in found.items() if value is not None}


# ── Assignees ─────────────────────────────────────────────────────────────────────────────────────────


MAX_MEMBERS = 1_000
MAX_NAME = 256


class AssigneeType(StrEnum):
    AGENT = "agent"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class Assignee:
    type: AssigneeType
    id: str

    def __post_init__(self) -> None:
        checked_id("assignee_id", self.id)


class TeamStrategy(StrEnum):
    LEAD = "lead"
    ROUND_ROBIN = "round_robin"


@dataclass(frozen=True, slots=True)
class TeamDefinition:
    """`members` are agents, in the order of their turns; without a `lead` the first member leads."""

    team_id: str
    members: tuple[str, ...]
    lead: str | None = None
    strategy: TeamStrategy = TeamStrategy.LEAD
    name: str = ""
    policies: WorkerPolicies = field(default_factory=WorkerPolicies)

    def __post_init__(self) -> None:
        checked_id("team_id", self.team_id)
        if len(self.name) > MAX_NAME or not self.name.isprintable():
            raise PolicyError("name", f"must be one line of at most {MAX_NAME} characters")
        if not 1 <= len(self.members) <= MAX_MEMBERS:
            raise PolicyError("members", f"a team has between 1 and {MAX_MEMBERS} members, not {len(self.members)}")
        for member in self.members:
            checked_id("members", member)
        if len(set(self.members)) < len(self.members):
            raise PolicyError("members", "an agent is listed twice")
        if self.lead is not None and self.lead not in self.members:
            raise PolicyError("lead", f"{shown(self.lead)} is not a member of the team")


def resolve_agent(team: TeamDefinition, turn: int) -> str:
    """The agent that works for the team; `turn` counts the runs the team was given before."""
    match team.strategy:
        case TeamStrategy.LEAD:
            return team.members[0] if team.lead is None else team.lead
        case TeamStrategy.ROUND_ROBIN:
            return team.members[turn % len(team.members)]
        case _:
            assert_never(team.strategy)


def worker_of(assignee: Assignee | None, member: str | None) -> str | None:
    """The agent that works: the member that a team has sent, or whoever is assigned; None = nobody is known."""
    if member is not None:
        return member
    return assignee.id if assignee is not None and assignee.type is AssigneeType.AGENT else None


def workers_of(team: TeamDefinition) -> tuple[str, ...]:
    """Whoever of them may be sent, at one turn or another."""
    return team.members if team.strategy is TeamStrategy.ROUND_ROBIN else (resolve_agent(team, 0),)


@dataclass(frozen=True, slots=True)
class AssignmentDefinition:
    """A workflow given to somebody, with the policies that hold unless a schedule says otherwise."""

    assignment_id: str
    workflow_id: str
    assignee: Assignee
    approval_policy: ApprovalPolicy | None = None
    retry_policy: RetryPolicy | None = None
    failure_policy: FailurePolicy | None = None
    queue_policy: QueuePolicy | None = None

    def __post_init__(self) -> None:
        checked_id("assignment_id", self.assignment_id)
        checked_id("workflow_id", self.workflow_id)


def first_given(*values: T | None) -> T | None:
    """The precedence of policies: pass the schedule's, the assignment's, the agent's, the default.

    Approval gates only add up and are merged by the approval policy, not chosen by this.
    """
    return next((value for value in values if value is not None), None)


def parse_assignee(assignee_type: object, assignee_id: object) -> Assignee | None:
    """None if neither is given; an id without a type is an agent's. Raises PolicyError."""
    if assignee_id is None:
        if assignee_type is None:
            return None
        raise PolicyError("assignee_id", "is required with assignee_type")
    kind = AssigneeType.AGENT if assignee_type is None else parse_name(AssigneeType, {}, assignee_type, "assignee_type")
    return Assignee(kind, checked_id("assignee_id", assignee_id))


TEAM_FIELDS: Final = ("team_id", "name", "members", "lead", "strategy", "policies")
TEAM_NAMES: Final[Mapping[str, str]] = {"id": "team_id"}


def parse_team(document: object) -> TeamDefinition:
    """`budget` may stand beside `policies`, in which it has its place."""
    given = read_object(document, "team", (*TEAM_FIELDS, "budget"), TEAM_NAMES)
    members = given.get("members")
    if members is None:
        raise PolicyError("members", "is required")
    if not isinstance(members, list | tuple):
        raise PolicyError("members", f"must be an array of agent IDs, not {shown(members)}")
    lead, name = given.get("lead"), given.get("name", "")
    if not isinstance(name, str):
        raise PolicyError("name", f"must be a string, not {shown(name)}")
    return TeamDefinition(
        team_id=checked_id("team_id", given.get("team_id")),
        members=tuple(members),
        lead=None if lead is None else checked_id("lead", lead),
        strategy=parse_name(TeamStrategy, {}, given.get("strategy", TeamStrategy.LEAD), "strategy"),
        name=name,
        policies=_team_policies(given.get("policies"), given.get("budget")),
    )


def _team_policies(policies: object, budget: object) -> WorkerPolicies:
    read = WorkerPolicies() if policies is None else read_part("policies", parse_worker_policies, policies)
    if budget is None:
        return read
    if read.budget is not None:
        raise PolicyError("budget", "is specified twice: here and in policies")
    return replace(read, budget=parse_worker_policies({"budget": budget}).budget)


def team_document(team: TeamDefinition) -> dict[str, Any]:
    """Only what differs from a default, and always id, members and strategy."""
    document: dict[str, Any] = {"team_id": team.team_id, "members": list(team.members), "strategy": team.strategy.value}
    if team.name:
        document["name"] = team.name
    if team.lead is not None:
        document["lead"] = team.lead
    if team.policies != WorkerPolicies():
        document["policies"] = policies_document(team.policies)
    return document


_POLICIES: Final = {
    "approval_policy": parse_approval_policy,
    "retry_policy": parse_retry_policy,
    "failure_policy": parse_failure_policy,
    "queue_policy": parse_queue_policy,
}


ASSIGNMENT_FIELDS: Final = ("assignment_id", "workflow_id", "assignee_type", "assignee_id", *_POLICIES)
ASSIGNMENT_NAMES: Final[Mapping[str, str]] = {"id": "assignment_id"}


def parse_assignment(document: object) -> AssignmentDefinition:
    given = read_object(document, "assignment", ASSIGNMENT_FIELDS, ASSIGNMENT_NAMES)
    assignee = parse_assignee(given.get("assignee_type"), given.get("assignee_id"))
    if assignee is None:
        raise PolicyError("assignee_id", "is required")
    policies: dict[str, Any] = {
        name: read_part(name, read, given[name]) for name, read in _POLICIES.items() if name in given
    }
    return AssignmentDefinition(
        assignment_id=checked_id("assignment_id", given.get("assignment_id")),
        workflow_id=checked_id("workflow_id", given.get("workflow_id")),
        assignee=assignee,
        **policies,
    )


def assignment_document(assignment: AssignmentDefinition) -> dict[str, Any]:
    said = {name: getattr(assignment, name) for name in _POLICIES}
    return {
        "assignment_id": assignment.assignment_id,
        "workflow_id": assignment.workflow_id,
        "assignee_type": assignment.assignee.type.value,
        "assignee_id": assignment.assignee.id,
        **{name: _renamed_policy(policy) for name, policy in said.items() if policy is not None},
    }


def _renamed_policy(policy: Any) -> dict[str, Any]:
    """A queue policy has other names outside than inside."""
    document = policy_document(policy)
    return {QUEUE_NAMES.get(name, name): value for name, value in document.items()}
