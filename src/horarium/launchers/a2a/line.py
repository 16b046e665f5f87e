"""How an agent is spoken to now: the ways to it, one call by the first of them, and asking it to stop a task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from horarium.clock import Clock
from horarium.launchers.a2a import outcomes
from horarium.launchers.a2a.card import Card, CardError, endpoints, read_card
from horarium.launchers.a2a.cards import Cards
from horarium.launchers.a2a.client import A2AClient, Called
from horarium.launchers.a2a.conversation import CalledOff, Left, called_off
from horarium.launchers.a2a.dialect import (
    OTHER_DIALECT_CODES,
    Dialect,
    MessageSeen,
    RpcFailed,
    TaskSeen,
    TasksListed,
    cancel_body,
    get_body,
)
from horarium.launchers.a2a.hints import Hints
from horarium.launchers.a2a.ways import Way, moved_back, ways_to, without_address, without_dialect
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.life.outcome import Asked, Outcome, RunCancelled
from horarium.schedule.json_limits import Json

POLL_SECONDS = 10.0
# For telling an agent to stop, beyond the deadline of the run.
CALL_OFF_SECONDS = 5.0
_MAX_REMEMBERED = 10_000


class Dialects:
    """In which dialect each agent answered last, as far as this process knows."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str | None], Dialect] = {}

    def last(self, namespace: str, line: AgentLine) -> Dialect | None:
        return self._last.get((namespace, line.agent_id, line.url))

    def keep(self, namespace: str, line: AgentLine, dialect: Dialect) -> None:
        if len(self._last) >= _MAX_REMEMBERED:
            self._last.clear()
        self._last[namespace, line.agent_id, line.url] = dialect


@dataclass(frozen=True, slots=True)
class Means:
    """Services that all conversations of a process share."""

    clock: Clock
    client: A2AClient
    cards: Cards
    hints: Hints
    dialects: Dialects
    settling_seconds: float


@dataclass(slots=True)
class Line:
    """An agent as it can be spoken to now: the ways to it, the first of which is taken."""

    means: Means
    namespace: str
    agent: AgentLine
    headers: Mapping[str, str]
    card: CardSeen
    ways: tuple[Way, ...]
    answered: bool = False

    @classmethod
    async def to(
        cls, means: Means, namespace: str, agent: AgentLine, headers: Mapping[str, str], *, seconds: float
    ) -> Line:
        """`seconds` is what there is for all that is to be said: a card that does not come may not use it up."""
        try:
            async with asyncio.timeout(seconds / 4):
                seen = await means.cards.of(namespace, agent)
        except TimeoutError:
            seen = CardSeen(None, error="the agent card did not arrive in time", answered=False)
        found = endpoints(agent, _card(seen))
        ways = ways_to(found, agent.protocol, means.dialects.last(namespace, agent))
        return cls(means, namespace, agent, headers, seen, ways)

    @property
    def way(self) -> Way:
        return self.ways[0]

    @property
    def offers_push(self) -> bool:
        card = _card(self.card)
        return card is not None and card.push

    async def call(self, body: dict[str, Json], seconds: float) -> Called:
        way = self.way
        heard = await self.means.client.call(
            way.url,
            namespace=self.namespace,
            dialect=way.dialect,
            body=body,
            token=self.agent.token if way.with_token else None,
            headers=self.headers,
            seconds=seconds,
        )
        if isinstance(heard, TaskSeen | MessageSeen | TasksListed) or (
            isinstance(heard, RpcFailed) and heard.code not in OTHER_DIALECT_CODES
        ):
            self.answered = True
            self.means.dialects.keep(self.namespace, self.agent, way.dialect)
        return heard

    def leave(self, what: Left) -> bool:
        """Remove the unusable connections and tell whether another one is left."""
        way = self.way
        rest = without_dialect(self.ways, way.dialect) if what is Left.DIALECT else without_address(self.ways, way.url)
        if rest:
            self.ways = rest
        return bool(rest)

    def try_elsewhere(self) -> None:
        """One that has answered before is where the task is."""
        if not self.answered:
            self.ways = moved_back(self.ways, self.way)

    def told(self) -> CardSeen:
        if not self.answered:
            return self.card
        return replace(self.card, dialect=self.way.dialect.value, answered=True)


def _card(seen: CardSeen) -> Card | None:
    try:
        return None if seen.card is None else read_card(seen.card)
    except CardError:
        return None


async def call_off(line: Line, task_id: str, name: str) -> tuple[bool, Outcome | None]:
    """Cancel a task; return whether this is settled, and the outcome if the task had ended before."""
    while True:
        heard = await line.call(cancel_body(line.way.dialect, task_id, name), CALL_OFF_SECONDS)
        match called_off(heard):
            case CalledOff.TOLD | CalledOff.POINTLESS:
                return True, None
            case CalledOff.NOT_TOLD:
                if line.answered or not line.leave(Left.ADDRESS):
                    return False, None
            case CalledOff.OVER:
                if not isinstance(heard, TaskSeen):
                    heard = await line.call(get_body(line.way.dialect, task_id, name, history=False), CALL_OFF_SECONDS)
                became = outcomes.of_task(heard) if isinstance(heard, TaskSeen) else None
                return True, None if isinstance(became, RunCancelled | Asked) else became
            case CalledOff.OTHER_DIALECT:
                if not line.leave(Left.DIALECT):
                    return True, None
