"""Preparation of prompts, from their agents: address and token, and a place under the agent's capacity.

Agents are fetched together for all prompts of a claim, and judged one by one. The token of an agent goes only to its
allowed hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from horarium.core.document.checks import agent_token_name
from horarium.core.document.definition import agent_in
from horarium.core.document.reader import PROMPT
from horarium.core.document.secret_values import may_go_to, not_allowed
from horarium.core.lifecycle.outcome import Refused
from horarium.features.agents import task_rows
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import Key, UnreadableDocument, find_agents
from horarium.features.runs.preparation import CompleteLaunch, LaunchDraft, SealedSecret, agent_of
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget, RunWork, TargetPlaces
from horarium.features.secrets.preparation import fetch_secrets
from horarium.instant import Instant
from horarium.launchers.launcher import AgentLine
from horarium.launchers.requests import destination_of
from horarium.platform.database import Connection
from horarium.platform.database.installation import CannotUnseal, Sealer

_NO_SECRETS: Final[Mapping[str, SealedSecret]] = MappingProxyType({})


class AgentPreparer:
    """Give each prompt the line to its agent. Secrets come before: the token is one of them."""

    def __init__(self, sealer: Sealer | None) -> None:
        self._sealer = sealer

    def needed(self, draft: LaunchDraft) -> bool:
        return draft.work.kind == PROMPT.name

    def load(self, connection: Connection, drafts: Sequence[LaunchDraft]) -> CompleteLaunch:
        known = ((draft.work.namespace, agent_of(draft.work)) for draft in drafts)
        agents = find_agents(connection, {(namespace, agent) for namespace, agent in known if agent is not None})

        def complete(draft: LaunchDraft) -> Refused | None:
            work, agent_id = draft.work, agent_of(draft.work)
            if agent_id is None:
                has = f"{work.assignee_type} {work.assignee!r} has no known agent"
                return Refused(f"The prompt has no recipient: {has if work.assignee else 'no agent is assigned'}")
            secrets = _NO_SECRETS if draft.secrets is None else draft.secrets.rows
            line = line_to(self._sealer, agent_id, agents.get((work.namespace, agent_id)), secrets)
            if isinstance(line, Refused):
                return line
            draft.agent = line if draft.secrets is None else replace(line, input_hosts=draft.secrets.pins())
            return None

        return complete


def token_names(work: RunWork) -> frozenset[str]:
    """Names of the secrets that hold the token of the run's agent."""
    agent_id = agent_of(work)
    return frozenset() if agent_id is None else frozenset({agent_token_name(agent_id)})


class AgentPlaces:
    """Places of agents for prompts: what was sent and not answered for good takes one."""

    def needed(self, target: ReadyTarget) -> bool:
        return agent_in(target.target) is not None

    def read(self, connection: Connection, targets: Sequence[ReadyTarget]) -> Mapping[ReadyTarget, TargetPlaces]:
        return task_rows.read_places(connection, targets)

    def unmarked(self, connection: Connection, full: Sequence[ReadyTarget], now: Instant) -> list[ReadyTarget]:
        return task_rows.with_unmarked(connection, full, now)

    def mark(self, connection: Connection, targets: Sequence[ReadyTarget], now: Instant, most: int) -> None:
        task_rows.mark_waiting(connection, targets, now, most)

    def lock(self, connection: Connection, targets: Sequence[ReadyTarget]) -> Mapping[ReadyTarget, TargetPlaces]:
        return task_rows.lock_places(connection, targets)

    def followed(
        self, connection: Connection, targets: Sequence[ReadyTarget], now: Instant, most: int
    ) -> list[ClaimCandidate]:
        return task_rows.followed(connection, targets, now, most)


def find_lines(connection: Connection, sealer: Sealer | None, keys: Collection[Key]) -> dict[Key, AgentLine | Refused]:
    """For who speaks with agents about other things than a launch."""
    found = fetch_secrets(connection, [(ns, frozenset({agent_token_name(agent_id)})) for ns, agent_id in keys])
    rows = find_agents(connection, keys)
    return {
        (namespace, agent_id): line_to(sealer, agent_id, rows.get((namespace, agent_id)), found.get(namespace, {}))
        for namespace, agent_id in keys
    }


def line_to(
    sealer: Sealer | None,
    agent_id: str,
    agent: AgentDefinition | UnreadableDocument | None,
    secrets: Mapping[str, SealedSecret],
) -> AgentLine | Refused:
    if agent is None:
        return Refused(f"Agent {agent_id!r} does not exist")
    if isinstance(agent, UnreadableDocument):
        return Refused(f"Agent {agent_id!r} cannot be read: {agent.why}")
    if agent.url is None:
        return Refused(f"Agent {agent_id!r} has no url to send prompts to")
    row = secrets.get(agent_token_name(agent_id))
    token = _token(sealer, agent_id, agent.url, row)
    if isinstance(token, Refused):
        return token
    token_hosts = None if row is None else row.hosts
    return AgentLine(agent_id, agent.url, agent.protocol, agent.context, token, agent.allowed_hosts, token_hosts)


def _token(sealer: Sealer | None, agent_id: str, url: str, row: SealedSecret | None) -> str | Refused | None:
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
