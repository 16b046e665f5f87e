"""SQL that reads the policies of agents, teams and assignments for runs that are about to be created.

There is one query for each kind of row, for all runs together. A row that cannot be read affects those that name it.
Until it is repaired, their runs require approval at every step: its demands are unknown, and may have been that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Table, select, update

from horarium.core.document.assignee import (
    POLICY_NAMES,
    Assignee,
    AssigneeType,
    AssignmentDefinition,
    TeamDefinition,
    TeamStrategy,
    parse_assignment,
    parse_team,
    resolve_agent,
    workers_of,
)
from horarium.core.document.effective_policies import Effective, PolicyOrigin, StatedPolicies, merge_policies
from horarium.core.policy.approval import ApprovalMode, ApprovalPolicy, FailurePolicy, RetryPolicy, WhileWaiting
from horarium.core.policy.limits import RunLimits
from horarium.core.policy.queue import QueuePolicy
from horarium.errors import HorariumError
from horarium.features.agents.definition import AgentDefinition, parse_agent
from horarium.platform.database.statements import from_text, rows_with
from horarium.platform.database.tables import agents, assignments, teams

T = TypeVar("T")
Key = tuple[str, str]
"""A namespace, and an id in it."""

NO_CAPS: Final = RunLimits()
_UNREADABLE: Final = StatedPolicies(
    PolicyOrigin.AGENT, ApprovalPolicy(requires_approval=True, mode=ApprovalMode.EVERY_NODE)
)


class PolicyQuestion(NamedTuple):
    """About one run: what its own definition says, and who else may have a word.

    `member` is whoever of the team works, where the assignee is a team; None = whoever would be next.
    """

    definition_approval: ApprovalPolicy
    definition_retry: RetryPolicy
    definition_failure: FailurePolicy
    definition_limits: RunLimits
    assignment_id: str | None
    assignee: Assignee | None
    workflow_approval: ApprovalPolicy | None
    member: str | None = None

    @property
    def is_own_alone(self) -> bool:
        """Tell whether only the definition can set a policy."""
        return self.assignment_id is None and self.assignee is None and self.workflow_approval is None


class TeamTurn(NamedTuple):
    """A team, and how many runs it was given before."""

    team: TeamDefinition
    turn: int


class UnreadableDocument(NamedTuple):
    """A row that is there and cannot be read."""

    why: str


@dataclass(frozen=True, slots=True)
class PolicyDocuments:
    """The rows that have a word, by namespace and id; what is not there says nothing."""

    assignments: Mapping[Key, AssignmentDefinition | UnreadableDocument]
    teams: Mapping[Key, TeamTurn | UnreadableDocument]
    agents: Mapping[Key, AgentDefinition | UnreadableDocument]

    def assignee_of(self, namespace: str, assignee: Assignee | None, assignment_id: str | None) -> Assignee | None:
        """Its own, or else that of the assignment."""
        if assignee is not None or assignment_id is None:
            return assignee
        found = self.assignments.get((namespace, assignment_id))
        return found.assignee if isinstance(found, AssignmentDefinition) else None

    def member_of(self, namespace: str, assignee: Assignee, turn: int | None = None) -> str | None:
        """Resolve the team member who works; None for an agent, and for a missing or unreadable team."""
        if assignee.type is AssigneeType.AGENT:
            return None
        found = self.teams.get((namespace, assignee.id))
        return resolve_agent(found.team, found.turn if turn is None else turn) if isinstance(found, TeamTurn) else None

    def effective(self, namespace: str, asked: PolicyQuestion, caps: RunLimits = NO_CAPS) -> Effective | None:
        """None where only the definition itself says anything."""
        if asked.is_own_alone:
            return None
        assignee = self.assignee_of(namespace, asked.assignee, asked.assignment_id)
        said = [
            StatedPolicies(
                PolicyOrigin.SCHEDULE,
                asked.definition_approval,
                asked.definition_retry,
                asked.definition_failure,
                asked.definition_limits,
            )
        ]
        if asked.assignment_id is not None:
            said += _of_assignment(self.assignments.get((namespace, asked.assignment_id)))
        if assignee is not None:
            said += self._of_workers(namespace, assignee, asked.member)
        if asked.workflow_approval is not None:
            said.append(StatedPolicies(PolicyOrigin.WORKFLOW, asked.workflow_approval))
        merged = merge_policies(said, has_assignee=assignee is not None or asked.assignment_id is not None, caps=caps)
        assignment = self.assignments.get((namespace, asked.assignment_id or ""))
        return replace(merged, queue=assignment.queue_policy if isinstance(assignment, AssignmentDefinition) else None)

    def _of_workers(self, namespace: str, assignee: Assignee, member: str | None) -> list[StatedPolicies]:
        """The agent that works goes before the team that sends it."""
        if assignee.type is AssigneeType.AGENT:
            return _of_worker(self.agents.get((namespace, assignee.id)))
        team = self.teams.get((namespace, assignee.id))
        who = member or self.member_of(namespace, assignee)
        own = [] if who is None else _of_worker(self.agents.get((namespace, who)))
        return [*own, *_of_worker(team.team if isinstance(team, TeamTurn) else team)]


def _of_assignment(found: AssignmentDefinition | UnreadableDocument | None) -> list[StatedPolicies]:
    match found:
        case None:
            return []
        case UnreadableDocument():
            return [_UNREADABLE]
        case _:
            said = (found.approval_policy, found.retry_policy, found.failure_policy)
            return [StatedPolicies(PolicyOrigin.ASSIGNMENT, *said)]


def _of_worker(found: AgentDefinition | TeamDefinition | UnreadableDocument | None) -> list[StatedPolicies]:
    match found:
        case None:
            return []
        case UnreadableDocument():
            return [_UNREADABLE]
        case _:
            said = found.policies
            return [StatedPolicies(PolicyOrigin.AGENT, said.approval, said.retry, said.failure, said.limits)]


def capacity_of(
    connection: Connection, namespace: str, assignee: Assignee | None, assignment_id: str | None
) -> tuple[QueuePolicy | None, WhileWaiting | None]:
    """Queue policy of an assignment, and the approvers' policy for waiting runs; None also for what is unreadable."""
    given = [] if assignment_id is None else [(namespace, assignment_id)]
    speakers = find_policy_documents(connection, given, [] if assignee is None else [(namespace, assignee)])
    found = None if assignment_id is None else speakers.assignments.get((namespace, assignment_id))
    effective = speakers.effective(namespace, _SILENT._replace(assignment_id=assignment_id, assignee=assignee))
    waiting = None if effective is None else effective.approval.while_waiting
    return found.queue_policy if isinstance(found, AssignmentDefinition) else None, waiting


_SILENT = PolicyQuestion(ApprovalPolicy(), RetryPolicy(), FailurePolicy(), RunLimits(), None, None, None)


def effective_for(
    connection: Connection, namespace: str, asked: Sequence[PolicyQuestion], *, caps: RunLimits = NO_CAPS
) -> list[Effective | None]:
    """For runs of one namespace, in their order; None where only the definition itself says anything."""
    concerned = [each for each in asked if not each.is_own_alone]
    if not concerned:
        return [None] * len(asked)
    speakers = find_policy_documents(
        connection,
        {(namespace, each.assignment_id) for each in concerned if each.assignment_id is not None},
        {(namespace, each.assignee) for each in concerned if each.assignee is not None},
        also={(namespace, each.member) for each in concerned if each.member is not None},
    )
    return [speakers.effective(namespace, each, caps) for each in asked]


def find_policy_documents(
    connection: Connection,
    assignment_ids: Collection[Key],
    assignees: Collection[tuple[str, Assignee]],
    *,
    also: Collection[Key] = (),
    lock: bool = False,
) -> PolicyDocuments:
    """`also` are agents that are asked about beside those that the others lead to.

    With `lock` nobody else gives a turn of these teams until the transaction ends: always before counters are locked.
    """
    given = _assignments(connection, assignment_ids)
    named = {
        (namespace, each.assignee) for (namespace, _), each in given.items() if isinstance(each, AssignmentDefinition)
    }
    everybody = {*assignees, *named}
    found = _teams(connection, {(ns, who.id) for ns, who in everybody if who.type is AssigneeType.TEAM}, lock=lock)
    single = {(ns, who.id) for ns, who in everybody if who.type is AssigneeType.AGENT}
    members = {
        (ns, who) for (ns, _), each in found.items() if isinstance(each, TeamTurn) for who in workers_of(each.team)
    }
    return PolicyDocuments(given, found, find_agents(connection, {*single, *members, *also}))


def teams_among(connection: Connection, keys: Collection[Key]) -> set[Key]:
    """The ids that are a team's and no agent's."""
    return _teams(connection, keys, lock=False).keys() - {key for key, _ in _texts(connection, agents, keys)}


def take_turns(connection: Connection, namespace: str, team_ids: Sequence[str]) -> list[str | None]:
    """The agent that works for each, in their order; the turn of a team moves with each time that it is named.

    None for a team that is gone or cannot be read.
    """
    found = _teams(connection, {(namespace, team_id) for team_id in team_ids}, lock=True)
    taken: Counter[Key] = Counter()
    members: list[str | None] = []
    for key in ((namespace, team_id) for team_id in team_ids):
        team = found.get(key)
        if isinstance(team, TeamTurn):
            members.append(resolve_agent(team.team, team.turn + taken[key]))
            taken[key] += team.team.strategy is TeamStrategy.ROUND_ROBIN
        else:
            members.append(None)
    move_turns(connection, taken)
    return members


def move_turns(connection: Connection, taken: Mapping[Key, int]) -> None:
    """By so many; the caller has locked the teams, or takes their locks here in sorted order."""
    for (namespace, team_id), count in sorted(taken.items()):
        if count:
            mine = (teams.c.namespace == namespace, teams.c.team_id == team_id)
            connection.execute(update(teams).where(*mine).values(turn=teams.c.turn + count))


def _assignments(connection: Connection, keys: Collection[Key]) -> dict[Key, AssignmentDefinition | UnreadableDocument]:
    return {key: _read(_assignment_of, text) for key, text in _texts(connection, assignments, keys)}


def find_agents(connection: Connection, keys: Collection[Key]) -> dict[Key, AgentDefinition | UnreadableDocument]:
    return {key: read_agent(key[1], text) for key, text in _texts(connection, agents, keys)}


def read_agent(agent_id: str, text: str) -> AgentDefinition | UnreadableDocument:
    return _read(partial(_agent_of, agent_id), text)


def _texts(connection: Connection, table: Table, keys: Collection[Key]) -> list[tuple[Key, str]]:
    if not keys:
        return []
    columns = tuple(table.primary_key.columns)
    rows = rows_with(connection, select(*columns, table.c.document), columns, keys)
    return [((namespace, name), text) for namespace, name, text in rows]


def _teams(connection: Connection, keys: Collection[Key], *, lock: bool) -> dict[Key, TeamTurn | UnreadableDocument]:
    if not keys:
        return {}
    columns = (teams.c.namespace, teams.c.team_id)
    statement = select(*columns, teams.c.turn, teams.c.document).order_by(*columns)
    rows = rows_with(connection, statement.with_for_update() if lock else statement, columns, keys)
    found: dict[Key, TeamTurn | UnreadableDocument] = {}
    for namespace, name, turn, text in rows:
        team = _read(_team_of, text)
        found[namespace, name] = team if isinstance(team, UnreadableDocument) else TeamTurn(team, turn)
    return found


def _read(parse: Callable[[str], T], text: str) -> T | UnreadableDocument:
    try:
        return parse(text)
    except (HorariumError, ValueError, TypeError, KeyError, AttributeError) as wrong:
        return UnreadableDocument(str(wrong)[:200])


@lru_cache(maxsize=1_024)
def _agent_of(agent_id: str, text: str) -> AgentDefinition:
    """Before agents had a door, people wrote rows by hand: without the id, and with policies beside the rest."""
    document = from_text(text)
    beside = {name: document[name] for name in POLICY_NAMES if name in document}
    if not beside:
        return parse_agent({"id": agent_id, **document})
    plain = {name: value for name, value in document.items() if name not in beside}
    return parse_agent({"id": agent_id, **plain, "policies": {**plain.get("policies", {}), **beside}})


@lru_cache(maxsize=1_024)
def _team_of(text: str) -> TeamDefinition:
    return parse_team(from_text(text))


@lru_cache(maxsize=1_024)
def _assignment_of(text: str) -> AssignmentDefinition:
    return parse_assignment(from_text(text))
