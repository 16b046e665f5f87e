"""Connections to agents: cached cards, the addresses of an agent, and one call.

Cards are cached, failures for a shorter time. A card that cannot be fetched stops no run: the registered address is
used then, and the dialect is found by trying.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from horarium.core.document.json_values import Json
from horarium.core.lifecycle.outcome import Asked, Outcome, RunCancelled
from horarium.launchers.a2a import messages
from horarium.launchers.a2a.card import (
    AgentRoute,
    Card,
    CardError,
    card_urls,
    endpoints,
    moved_back,
    read_card,
    ways_to,
    without_address,
    without_dialect,
)
from horarium.launchers.a2a.client import A2AClient, Called, CardFailed, CardFetched, CardUnchanged
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
from horarium.launchers.a2a.messages import Hints
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.payload import clean_text
from horarium.platform.clock import Clock

# ── cards ─────────────────────────────────────────────────────────────────────────────────────────────


CACHE_SECONDS = 300.0
FAILED_CACHE_SECONDS = 60.0
# All addresses of one card together: it must not eat the time that the prompt has.
FETCH_SECONDS = 10.0
# Cards that are kept, and what they measure together, as they came: an object in memory is some times larger.
MOST_CARDS = 1_024
MOST_BYTES = 8 * 1_048_576

_NOWHERE = CardSeen(None, error="the agent has no URL", answered=False)
_Key: TypeAlias = tuple[str, str, str]
"""Namespace, agent and address: what one tenant's agent says is no other's business, and a moved agent is another."""


@dataclass(frozen=True, slots=True)
class _CachedCard:
    """`url` is where the card was found; None = it was not."""

    seen: CardSeen
    url: str | None
    until: float
    size: int = 0


class Cards:
    """`of` belongs to one event loop; `check` may be called from any."""

    def __init__(self, client: A2AClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._shelf = _Shelf()
        self._fetching: dict[_Key, asyncio.Lock] = {}

    async def of(self, namespace: str, line: AgentLine) -> CardSeen:
        """As it was seen in the last minutes, or as it is now; an older one while nobody answers.

        Never raises because of the agent. Several that ask at once wait for one answer.
        """
        if line.url is None:
            return _NOWHERE
        key = (namespace, line.agent_id, line.url)
        if (known := self._known(key)) is not None:
            return known
        lock = self._fetching.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                known = self._known(key)
                return known if known is not None else (await self._fetch(key)).seen
        finally:
            if not lock.locked():
                self._fetching.pop(key, None)

    async def check(self, namespace: str, line: AgentLine) -> CardSeen:
        """As it is now."""
        if line.url is None:
            return _NOWHERE
        found = await self._fetch((namespace, line.agent_id, line.url))
        return found.seen if found.error is None else CardSeen(None, error=found.error, answered=found.answered)

    def _known(self, key: _Key) -> CardSeen | None:
        kept = self._shelf.get(key)
        return None if kept is None or kept.until <= self._clock.monotonic() else kept.seen

    async def _fetch(self, key: _Key) -> _Found:
        before = self._shelf.get(key)
        found = await self._look(key, before)
        now = self._clock.monotonic()
        if found.error is None:
            self._shelf.put(key, _CachedCard(found.seen, found.url, now + CACHE_SECONDS, found.size))
            return found
        if before is not None and before.url is not None and not found.answered:
            # It has had a card and is away: where its prompts go has not changed by that.
            self._shelf.put(key, replace(before, until=now + FAILED_CACHE_SECONDS))
            return replace(found, seen=before.seen)
        self._shelf.put(key, _CachedCard(found.seen, None, now + FAILED_CACHE_SECONDS))
        return found

    async def _look(self, key: _Key, before: _CachedCard | None) -> _Found:
        """Where it was found last is asked first. Whoever does not answer there answers nowhere else either."""
        namespace, _, line_url = key
        last = None if before is None else before.url
        errors: list[str] = []
        answered = True
        ends = self._clock.monotonic() + FETCH_SECONDS
        for url in dict.fromkeys([*([] if last is None else [last]), *card_urls(line_url)]):
            etag = before.seen.etag if before is not None and url == last else None
            left = ends - self._clock.monotonic()
            fetched = await self._client.fetch_card(url, namespace=namespace, etag=etag, seconds=left)
            match fetched:
                case CardUnchanged() if before is not None:
                    return _Found(before.seen, before.url, before.size)
                case CardUnchanged():
                    errors.append(f"{url}: HTTP 304 for a request without If-None-Match")
                case CardFetched(document, etag, size):
                    try:
                        read_card(document)
                    except CardError as wrong:
                        errors.append(f"{url}: {wrong}")
                    else:
                        return _Found(CardSeen(document, etag), url, size)
                case CardFailed(error, answered):
                    errors.append(f"{url}: {error}")
                    if not answered:
                        break
        said = clean_text(_telling(errors), 500)
        return _Found(CardSeen(None, error=said, answered=answered), None, error=said, answered=answered)


@dataclass(frozen=True, slots=True)
class _Found:
    """`error` None: it is there. `answered`: somebody was, whatever came of it."""

    seen: CardSeen
    url: str | None
    size: int = 0
    error: str | None = None
    answered: bool = True


class _Shelf:
    """The cards that were used last, as far as there is room. Any thread may use it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _CachedCard] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _CachedCard | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: _Key, kept: _CachedCard) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._size += kept.size - (0 if before is None else before.size)
            self._kept[key] = kept
            while len(self._kept) > MOST_CARDS or self._size > MOST_BYTES:
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.size


def _telling(errors: list[str]) -> str:
    """That there is none under one of the names says least."""
    return next((each for each in errors if not each.endswith("HTTP 404")), errors[0] if errors else "not found")


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────


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
class ConversationServices:
    """Services that all conversations of a process share."""

    clock: Clock
    client: A2AClient
    cards: Cards
    hints: Hints
    dialects: Dialects
    settling_seconds: float


@dataclass(slots=True)
class AgentConnection:
    """An agent as it can be spoken to now: the ways to it, the first of which is taken."""

    means: ConversationServices
    namespace: str
    agent: AgentLine
    headers: Mapping[str, str]
    card: CardSeen
    ways: tuple[AgentRoute, ...]
    answered: bool = False

    @classmethod
    async def to(
        cls,
        means: ConversationServices,
        namespace: str,
        agent: AgentLine,
        headers: Mapping[str, str],
        *,
        seconds: float,
    ) -> AgentConnection:
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
    def way(self) -> AgentRoute:
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

    def card_seen(self) -> CardSeen:
        if not self.answered:
            return self.card
        return replace(self.card, dialect=self.way.dialect.value, answered=True)


def _card(seen: CardSeen) -> Card | None:
    try:
        return None if seen.card is None else read_card(seen.card)
    except CardError:
        return None


async def call_off(line: AgentConnection, task_id: str, name: str) -> tuple[bool, Outcome | None]:
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
                became = messages.outcome_of_task(heard) if isinstance(heard, TaskSeen) else None
                return True, None if isinstance(became, RunCancelled | Asked) else became
            case CalledOff.OTHER_DIALECT:
                if not line.leave(Left.DIALECT):
                    return True, None
