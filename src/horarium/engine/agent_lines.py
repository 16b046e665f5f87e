"""How a prompt finds its agent: its row and token, fetched for all runs of a claim, and what was answered to it.

The token is opened for the launch, goes where its pins allow and nowhere else, and is kept nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from horarium.engine.secrets import Found, fetch
from horarium.launchers.launcher import AgentLine, LaunchRequest
from horarium.launchers.outgoing import destination_of
from horarium.life.outcome import Refused
from horarium.schedule.agent import Agent
from horarium.schedule.credentials import agent_token_name
from horarium.schedule.kinds import PROMPT
from horarium.schedule.secret_value import may_go_to, not_allowed
from horarium.schedule.target import agent_in
from horarium.store.database import Connection
from horarium.store.policies import Key, Unreadable, find_agents
from horarium.store.runs.work import Work
from horarium.store.sealing import CannotUnseal, Sealer
from horarium.store.secrets import SecretRow

Agents: TypeAlias = Mapping[Key, Agent | Unreadable]
"""Agents by namespace and ID; a missing key means that the agent does not exist."""

NO_AGENTS: Final[Agents] = MappingProxyType({})


def agent_of(work: Work) -> str | None:
    """Agent of a prompt; None for any other run, and for a prompt without an agent."""
    return agent_in(work.target) if work.kind == PROMPT.name else None


def asked_agents(works: Iterable[Work]) -> set[Key]:
    return {(work.namespace, agent_id) for work in works if (agent_id := agent_of(work)) is not None}


def token_names(works: Iterable[Work]) -> list[tuple[str, frozenset[str]]]:
    """Names of agent tokens by namespace, in the form for secrets."""
    return [(namespace, frozenset({agent_token_name(agent_id)})) for namespace, agent_id in asked_agents(works)]


def answered_in(work: Work) -> bytes | None:
    """The approval that may hold the answer to what the agent has asked: while its task is there to go on with."""
    return work.approval_id if work.reference is not None and work.gates_passed and agent_of(work) else None


def to_agent(
    request: LaunchRequest, line: AgentLine, answer: str | None, confided: Collection[str] = ()
) -> LaunchRequest:
    """Add the agent's data; its token and `confided` texts are masked in what it returns."""
    secrets = (*request.secrets, *confided, *(() if line.token is None else (line.token,)))
    return replace(request, agent=line, answer=answer, secrets=secrets)


def find_lines(connection: Connection, sealer: Sealer | None, keys: Collection[Key]) -> dict[Key, AgentLine | Refused]:
    """For who speaks with agents about other things than a launch."""
    found: Found = fetch(connection, [(ns, frozenset({agent_token_name(agent_id)})) for ns, agent_id in keys])
    rows = find_agents(connection, keys)
    return {
        (namespace, agent_id): line_to(sealer, agent_id, rows.get((namespace, agent_id)), found.get(namespace, {}))
        for namespace, agent_id in keys
    }


def line_of(sealer: Sealer | None, work: Work, rows: Agents, secrets: Mapping[str, SecretRow]) -> AgentLine | Refused:
    agent_id = agent_of(work)
    if agent_id is None:
        whom = f"{work.assignee_type} {work.assignee!r} has no known agent" if work.assignee else "no agent is assigned"
        return Refused(f"The prompt has no recipient: {whom}")
    return line_to(sealer, agent_id, rows.get((work.namespace, agent_id)), secrets)


def line_to(
    sealer: Sealer | None, agent_id: str, agent: Agent | Unreadable | None, secrets: Mapping[str, SecretRow]
) -> AgentLine | Refused:
    if agent is None:
        return Refused(f"Agent {agent_id!r} does not exist")
    if isinstance(agent, Unreadable):
        return Refused(f"Agent {agent_id!r} cannot be read: {agent.why}")
    if agent.url is None:
        return Refused(f"Agent {agent_id!r} has no url to send prompts to")
    row = secrets.get(agent_token_name(agent_id))
    token = _token(sealer, agent_id, agent.url, row)
    if isinstance(token, Refused):
        return token
    token_hosts = None if row is None else row.hosts
    return AgentLine(agent_id, agent.url, agent.protocol, agent.context, token, agent.allowed_hosts, token_hosts)


def _token(sealer: Sealer | None, agent_id: str, url: str, row: SecretRow | None) -> str | Refused | None:
    if row is None:
        return None
    if sealer is None:
        return Refused(f"This process has no secret key and cannot decrypt the token of agent {agent_id!r}")
    destination = destination_of(url)
    if not may_go_to(row.hosts, destination):
        return Refused(f"{not_allowed(row.name, row.hosts, destination)}, or save the agent again with its token")
    try:
        return row.unseal(sealer)
    except CannotUnseal:
        return Refused(
            f"The token of agent {agent_id!r} cannot be decrypted with this installation's key. Set the token again"
        )
