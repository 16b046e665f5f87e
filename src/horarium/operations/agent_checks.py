"""What an agent is found to be when somebody looks: its card, and where its prompts would go by it.

The agent may take its time, or lie. It is asked while no transaction is open, and within a bounded time; what it says
is kept only if it still has the address that was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from horarium.errors import InvalidDefinition
from horarium.instant import Instant
from horarium.launchers.a2a.card import Card, CardError, Endpoint, Interface, endpoints, read_card, summary
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.outgoing import destination_of
from horarium.operations.agents import AGENTS
from horarium.operations.caller import Caller
from horarium.operations.errors import Refused
from horarium.operations.resources import Resources
from horarium.schedule.agent import Agent
from horarium.schedule.agent_words import AgentProtocol
from horarium.schedule.credentials import agent_token_name
from horarium.schedule.secret_value import may_go_to
from horarium.schedule.target import host_in
from horarium.store import agent_cards, assignees, secrets
from horarium.store.agent_cards import SeenCard
from horarium.store.assignees import AgentSeen
from horarium.store.database import Connection
from horarium.store.secrets import SecretName
from horarium.wire.roles import Permission

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

    def look(connection: Connection) -> tuple[Agent, SecretName | None]:
        token = secrets.find(connection, caller.namespace, agent_token_name(agent_id))
        return _agent(connection, caller, agent_id), token

    agent, token = resources.database.read(look)
    if agent.url is None:
        raise InvalidDefinition({"url": [f"the agent {agent_id!r} has no URL"]})
    token_hosts = None if token is None else token.hosts
    return AgentLine(
        agent_id, agent.url, agent.protocol, agent.context, allowed_hosts=agent.allowed_hosts, token_hosts=token_hosts
    )


async def ask(resources: Resources, caller: Caller, line: AgentLine) -> CardSeen:
    """Raises Refused while many of the namespace are being asked: each that hangs holds a connection."""
    if resources.cards is None:
        return CardSeen(None, error="this process does not call agents", answered=False)
    asking = resources.asking
    if asking[caller.namespace] >= MOST_AT_ONCE:
        raise Refused(f"{MOST_AT_ONCE} agents of this namespace are already being checked; retry in a few seconds")
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
            agent_cards.keep(connection, caller.namespace, line.agent_id, kept, now)
        return assignees.seen_of(connection, caller.namespace, [line.agent_id])[line.agent_id]

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


def _agent(connection: Connection, caller: Caller, agent_id: str, *, lock: bool = False) -> Agent:
    return AGENTS.kept(AGENTS.find(connection, caller, agent_id, lock=lock)).value
