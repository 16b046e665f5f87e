"""Teams and assignments, checks of an agent's card, and access of agents to their peers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from horarium.core.document.assignee import AgentProtocol, Assignee, AssigneeType, AssignmentDefinition, TeamDefinition
from horarium.core.document.checks import agent_token_name
from horarium.core.document.definition import host_in
from horarium.core.document.secret_values import may_go_to
from horarium.errors import InvalidDefinition
from horarium.features.agents import rows as agent_rows
from horarium.features.agents.definition import ASSIGNMENT, TEAM, AgentDefinition, may_speak
from horarium.features.agents.model import (
    AssignmentAlreadyExists,
    AssignmentInUse,
    AssignmentNotFound,
    TeamAlreadyExists,
    TeamInUse,
    TeamNotFound,
)
from horarium.features.agents.rows import AgentSeen, SeenCard
from horarium.features.agents.service import AGENTS
from horarium.features.documents import CheckedColumns, DocumentKind
from horarium.features.resources import Resources
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretName
from horarium.features.workflows.graph_rows import newest_versions
from horarium.instant import Instant
from horarium.launchers.a2a.card import Card, CardError, Endpoint, Interface, endpoints, read_card, summary
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.requests import destination_of
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.errors import Forbidden, OperationRefused
from horarium.platform.wire import Permission

_USERS_NAMED = 20


def _check_team(
    resources: Resources, connection: Connection, caller: Caller, team: TeamDefinition
) -> CheckedColumns[TeamDefinition]:
    """All members are agents that there are."""
    known = agent_rows.AGENTS.find_many(connection, caller.namespace, team.members)
    wrong = {
        f"members.{place}": [f"agent {name!r} not found"]
        for place, name in enumerate(team.members)
        if name not in known
    }
    if wrong:
        raise InvalidDefinition(wrong)
    return CheckedColumns({"turn": 0})


# A write leaves whose turn it is, as far as there are as many members.
TEAMS: Final = DocumentKind(agent_rows.TEAMS, TEAM, TeamNotFound, TeamAlreadyExists, _check_team)


def delete_team(resources: Resources, caller: Caller, team_id: str) -> None:
    """Refused while an assignment or a schedule names it."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        TEAMS.find(connection, caller, team_id, lock=True)
        mine = [Assignee(AssigneeType.TEAM, team_id)]
        found = agent_rows.assignments_of(connection, caller.namespace, mine, _USERS_NAMED)
        users = [f"assignment {name}" for name in found]
        found = agent_rows.schedules_of(connection, caller.namespace, mine, _USERS_NAMED)
        users += [f"schedule {name}" for name in found]
        if users:
            raise TeamInUse(team_id, users, "assign their work to another assignee first")
        agent_rows.TEAMS.delete(connection, caller.namespace, team_id)

    resources.database.write(work)


def _check_assignment(
    resources: Resources, connection: Connection, caller: Caller, given: AssignmentDefinition
) -> CheckedColumns[AssignmentDefinition]:
    """Raise InvalidDefinition unless the namespace stores the workflow and the assignee."""
    problems: dict[str, list[str]] = {}
    if not newest_versions(connection, {(caller.namespace, given.workflow_id)}):
        problems["workflow_id"] = [f"workflow {given.workflow_id!r} not found; create it first"]
    unknown = unknown_assignee(connection, caller.namespace, given.assignee)
    if unknown is not None:
        problems["assignee_id"] = [unknown]
    if problems:
        raise InvalidDefinition(problems)
    return CheckedColumns({})


def unknown_assignee(connection: Connection, namespace: str, assignee: Assignee) -> str | None:
    rows = agent_rows.AGENTS if assignee.type is AssigneeType.AGENT else agent_rows.TEAMS
    found = rows.find(connection, namespace, assignee.id)
    return None if found is not None else f"{assignee.type.value} {assignee.id!r} not found"


ASSIGNMENTS: Final = DocumentKind(
    agent_rows.ASSIGNMENTS, ASSIGNMENT, AssignmentNotFound, AssignmentAlreadyExists, _check_assignment
)


def delete_assignment(resources: Resources, caller: Caller, assignment_id: str) -> None:
    """Refused while a schedule stands for it: what it demands would no longer hold."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        ASSIGNMENTS.find(connection, caller, assignment_id, lock=True)
        found = agent_rows.schedules_with_assignments(connection, caller.namespace, [assignment_id], _USERS_NAMED)
        if found:
            raise AssignmentInUse(assignment_id, [f"schedule {name}" for name in found], "edit or delete these first")
        agent_rows.ASSIGNMENTS.delete(connection, caller.namespace, assignment_id)

    resources.database.write(work)


CHECK_SECONDS: Final = 10.0
MOST_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class CheckedInterface:
    """An address that a card offers; `why_not` None = prompts may go there, `with_token` with the agent's token."""

    interface: Interface
    with_token: bool = False
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """`dialect` is that in which the agent would be spoken to now; None = that is found out by speaking."""

    agent_id: str
    seen: CardSeen
    card: Card | None
    interfaces: tuple[CheckedInterface, ...]
    dialect: str | None
    checked_at: Instant


def line_of(resources: Resources, caller: Caller, agent_id: str) -> AgentLine:
    """Settings for fetching the agent's card, which needs no token. Raises InvalidDefinition if it has no URL."""
    caller.require(Permission.OPERATE)

    def look(connection: Connection) -> tuple[AgentDefinition, SecretName | None]:
        token = secret_rows.find(connection, caller.namespace, agent_token_name(agent_id))
        return _agent(connection, caller, agent_id), token

    agent, token = resources.database.read(look)
    if agent.url is None:
        raise InvalidDefinition({"url": [f"the agent {agent_id!r} has no URL"]})
    token_hosts = None if token is None else token.hosts
    return AgentLine(
        agent_id, agent.url, agent.protocol, agent.context, allowed_hosts=agent.allowed_hosts, token_hosts=token_hosts
    )


async def ask(resources: Resources, caller: Caller, line: AgentLine) -> CardSeen:
    """Raises OperationRefused while many of the namespace are being asked: each that hangs holds a connection."""
    if resources.cards is None:
        return CardSeen(None, error="this process does not call agents", answered=False)
    asking = resources.asking
    if asking[caller.namespace] >= MOST_AT_ONCE:
        raise OperationRefused(
            f"{MOST_AT_ONCE} agents of this namespace are already being checked; retry in a few seconds"
        )
    asking[caller.namespace] += 1
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await resources.cards.check(caller.namespace, line)
    except TimeoutError:
        return CardSeen(None, error=f"no complete answer within {CHECK_SECONDS:.0f} s", answered=False)
    finally:
        asking[caller.namespace] -= 1


def keep(resources: Resources, caller: Caller, line: AgentLine, seen: CardSeen) -> AgentCheck:
    """Store the result of a check and return it. Raises AgentNotFound if the agent was deleted meanwhile."""
    caller.require(Permission.OPERATE)
    now, card = resources.clock.now(), _card(seen)

    def work(connection: Connection) -> AgentSeen:
        agent = _agent(connection, caller, line.agent_id, lock=True)
        if agent.url == line.url:
            kept = SeenCard(summary(seen.card), seen.etag, seen.error, seen.dialect)
            agent_rows.save_card(connection, caller.namespace, line.agent_id, kept, now)
        return agent_rows.seen_of(connection, caller.namespace, [line.agent_id])[line.agent_id]

    known = resources.database.write(work)
    offered = checked_interfaces(line, card)
    dialect = spoken_dialect(line.protocol, known.dialect, offered, card)
    return AgentCheck(line.agent_id, seen, card, offered, dialect, now)


def checked_interfaces(line: AgentLine, card: Card | None) -> tuple[CheckedInterface, ...]:
    """Return each that the card offers, in its order."""
    if card is None:
        return ()
    usable = {each.url: each for each in endpoints(line, card)}
    return tuple(_checked(each, usable.get(each.url), line) for each in card.interfaces)


def spoken_dialect(
    protocol: AgentProtocol, last: str | None, offered: Collection[CheckedInterface], card: Card | None
) -> str | None:
    """Choose a dialect: the registered one, else that of the last answer, else one that the card offers for use."""
    if protocol is not AgentProtocol.AUTO:
        return protocol.value
    used = [each.interface for each in offered if each.why_not is None] or (() if card is None else card.interfaces)
    return last or (used[0].dialect.value if used else None)


def _checked(interface: Interface, endpoint: Endpoint | None, line: AgentLine) -> CheckedInterface:
    if endpoint is not None:
        return CheckedInterface(interface, endpoint.with_token)
    host = host_in(interface.url)
    if host is None:
        why_not = "the URL is invalid"
    elif (line.url or "").lower().startswith("https:") and not interface.url.lower().startswith("https:"):
        why_not = "the URL uses http, but the agent is registered with https"
    elif host == host_in(line.url or "") and not may_go_to(line.token_hosts, destination_of(interface.url)):
        why_not = f"the agent's token may not be sent to {destination_of(interface.url)}"
    else:
        why_not = f"{host} is neither the agent's own host nor in its allowed_hosts"
    return CheckedInterface(interface, why_not=why_not)


def _card(seen: CardSeen) -> Card | None:
    try:
        return None if seen.card is None else read_card(seen.card)
    except CardError:
        return None


def _agent(connection: Connection, caller: Caller, agent_id: str, *, lock: bool = False) -> AgentDefinition:
    return AGENTS.stored(AGENTS.find(connection, caller, agent_id, lock=lock)).value


def require_peer(connection: Connection, caller: Caller, agent_id: str) -> None:
    """Raise Forbidden, also for an agent that does not exist, after the same work: an agent learns of no other."""
    own = caller.agent_id
    if own is None:
        return
    parents = agent_rows.parents_above(connection, caller.namespace, own, agent_id)
    if not may_speak(own, agent_id, parents):
        raise Forbidden("access denied")
