"""What an agent says of itself, without asking each time: cards are kept for a while, failures for a shorter one.

A card that cannot be had stops no run: the registered address is used then, and the dialect is found by asking.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TypeAlias

from horarium.launchers.a2a.card import CardError, card_urls, read_card
from horarium.launchers.a2a.client import A2AClient, CardFailed, CardFetched, CardUnchanged
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.payload import clean_text
from horarium.platform.clock import Clock

KEPT_SECONDS = 300.0
KEPT_FAILED_SECONDS = 60.0
# All addresses of one card together: it must not eat the time that the prompt has.
FETCH_SECONDS = 10.0
# Cards that are kept, and what they measure together, as they came: an object in memory is some times larger.
MOST_CARDS = 1_024
MOST_BYTES = 8 * 1_048_576

_NOWHERE = CardSeen(None, error="the agent has no URL", answered=False)
_Key: TypeAlias = tuple[str, str, str]
"""Namespace, agent and address: what one tenant's agent says is no other's business, and a moved agent is another."""


@dataclass(frozen=True, slots=True)
class _Kept:
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
            self._shelf.put(key, _Kept(found.seen, found.url, now + KEPT_SECONDS, found.size))
            return found
        if before is not None and before.url is not None and not found.answered:
            # It has had a card and is away: where its prompts go has not changed by that.
            self._shelf.put(key, replace(before, until=now + KEPT_FAILED_SECONDS))
            return replace(found, seen=before.seen)
        self._shelf.put(key, _Kept(found.seen, None, now + KEPT_FAILED_SECONDS))
        return found

    async def _look(self, key: _Key, before: _Kept | None) -> _Found:
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
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Kept | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: _Key, kept: _Kept) -> None:
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
