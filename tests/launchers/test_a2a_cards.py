"""Cards are kept for a while: where they are looked for, when they are asked for again, and what is never kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from launchers.far_ends import HttpFarEnd, Received, answer
from launchers.names import Ticking

from horarium.launchers.a2a import connections as module
from horarium.launchers.a2a.card import MAX_CARD_BYTES, OLD_WELL_KNOWN, WELL_KNOWN
from horarium.launchers.a2a.client import A2AClient
from horarium.launchers.a2a.connections import CACHE_SECONDS, FAILED_CACHE_SECONDS, Cards
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

# No test speaks TLS; reading the certificates of the world takes longer than a call.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CARD = {"name": "writer", "version": "1"}


class World:
    def __init__(self, far: HttpFarEnd) -> None:
        self.far = far
        self.clock = Ticking()
        self.cards = Cards(A2AClient(self.clock, AddressGuard(AddressPolicy(allow_loopback=True)), NO_TLS), self.clock)

    def line(self, path: str = "", agent_id: str = "writer", **fields: Any) -> AgentLine:
        return AgentLine(agent_id, self.far.url(path), token="secret", **fields)

    async def of(self, path: str = "", namespace: str = "default", **fields: Any) -> CardSeen:
        return await self.cards.of(namespace, self.line(path, **fields))

    @property
    def asked(self) -> list[str]:
        return [each.path for each in self.far.received]


def in_world(test: Callable[[World], Awaitable[None]], **answers: bytes) -> None:
    async def run() -> None:
        async with HttpFarEnd(answers={WELL_KNOWN: answer("200 OK", CARD), **answers}) as far:
            await test(World(far))

    asyncio.run(run())


def test_a_card_is_asked_for_once_in_a_while_and_without_the_token() -> None:
    async def test(world: World) -> None:
        first = await world.of()
        assert first == CardSeen(CARD)
        assert await world.of() is first
        world.clock.seconds += CACHE_SECONDS - 1
        assert await world.of() is first
        assert world.asked == [WELL_KNOWN]
        world.clock.seconds += 1
        assert await world.of() == first
        assert world.asked == [WELL_KNOWN] * 2
        assert "authorization" not in world.far.received[0].headers

    in_world(test)


def test_a_card_that_has_not_changed_is_not_sent_again() -> None:
    async def route(received: Received, _writer: asyncio.StreamWriter) -> bytes:
        if received.headers.get("if-none-match") == '"7"':
            return b"HTTP/1.1 304 Not Modified\r\n\r\n"
        return answer("200 OK", CARD, etag='"7"')

    async def test(world: World) -> None:
        world.far.routes[WELL_KNOWN] = route
        assert await world.of() == CardSeen(CARD, '"7"')
        world.clock.seconds += CACHE_SECONDS
        assert await world.of() == CardSeen(CARD, '"7"')
        assert len(world.asked) == 2
        assert await world.cards.check("default", world.line()) == CardSeen(CARD, '"7"')
        assert [each.headers.get("if-none-match") for each in world.far.received] == [None, '"7"', '"7"']
        world.clock.seconds += CACHE_SECONDS - 1
        await world.of()
        assert len(world.asked) == 3

    in_world(test)


def test_an_agent_is_asked_under_its_path_first_and_by_the_old_name_last() -> None:
    async def test(world: World) -> None:
        assert (await world.of("/agents/a/")).card == {"name": "old"}
        names = [f"/agents/a{WELL_KNOWN}", WELL_KNOWN, f"/agents/a{OLD_WELL_KNOWN}", OLD_WELL_KNOWN]
        assert world.asked == names
        # Where it was found is where it is asked for again.
        world.clock.seconds += CACHE_SECONDS
        await world.of("/agents/a/")
        assert world.asked == [*names, OLD_WELL_KNOWN]

    none = answer("404 Not Found")
    in_world(test, **{WELL_KNOWN: none, OLD_WELL_KNOWN: answer("200 OK", {"name": "old"})})


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (answer("404 Not Found"), "HTTP 404"),
        (answer("302 Found", location="http://127.0.0.1:1/card.json"), "HTTP 302"),
        (answer("304 Not Modified"), "HTTP 304"),
        (answer("200 OK", "<html>"), "not JSON"),
        (answer("200 OK", b"[]"), "not an object"),
        (answer("200 OK", {"url": "x"}), "no name"),
        (answer("200 OK", {"name": "a\x00"}), "U+0000"),
        (answer("200 OK", b'{"name":"a","more":' + b"[" * 300 + b"]" * 300 + b"}"), "nested"),
        (answer("200 OK", {"name": "a", "more": "x" * MAX_CARD_BYTES}), "larger than 262144"),
        (answer("200 OK", CARD, content_encoding="gzip"), "compressed"),
    ],
)
def test_a_card_that_cannot_be_had_is_asked_for_again_soon(raw: bytes, says: str) -> None:
    async def test(world: World) -> None:
        seen = await world.of()
        assert seen.card is None
        assert seen.error is not None
        assert says in seen.error
        assert len(world.asked) == 2
        assert await world.of() is seen
        assert len(world.asked) == 2
        world.far.answers[WELL_KNOWN] = answer("200 OK", CARD)
        world.clock.seconds += FAILED_CACHE_SECONDS
        assert await world.of() == CardSeen(CARD)

    in_world(test, **{WELL_KNOWN: raw})


def test_an_agent_that_is_away_has_the_card_that_it_had() -> None:
    async def run() -> None:
        async with HttpFarEnd(answers={WELL_KNOWN: answer("200 OK", CARD)}) as far:
            world = World(far)
            assert (await world.of()).card == CARD
        world.clock.seconds += CACHE_SECONDS
        assert (await world.of()).card == CARD
        checked = await world.cards.check("default", world.line())
        assert checked.card is None
        assert checked.error is not None
        assert (await world.of()).card == CARD
        # Back again, and without a card: that is what it says now.
        async with HttpFarEnd(port=far.port):
            world.clock.seconds += FAILED_CACHE_SECONDS
            assert (await world.of()).card is None

    asyncio.run(run())


def test_a_card_belongs_to_one_agent_of_one_namespace_at_one_address() -> None:
    async def test(world: World) -> None:
        await world.of()
        await world.of(namespace="other")
        await world.of(agent_id="editor")
        await world.of("/")
        assert len(world.asked) == 4

    in_world(test)


def test_those_who_ask_at_the_same_time_wait_for_one_answer() -> None:
    async def test(world: World) -> None:
        seen = await asyncio.gather(*(world.of() for _ in range(20)))
        assert all(each.card == CARD for each in seen)
        assert world.asked == [WELL_KNOWN]

    in_world(test)


def test_an_agent_without_an_address_is_not_asked() -> None:
    async def test(world: World) -> None:
        nowhere = AgentLine("writer", None)
        assert (await world.cards.of("default", nowhere)).error == "the agent has no URL"
        assert (await world.cards.check("default", nowhere)).error == "the agent has no URL"

    in_world(test)


@pytest.mark.parametrize(("name", "most"), [("MOST_CARDS", 2), ("MOST_BYTES", 2 * len(orjson.dumps(CARD)))])
def test_what_was_not_used_for_long_makes_room(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(module, name, most)

    async def test(world: World) -> None:
        for agent_id in ("a", "b", "a", "c", "a", "c"):
            await world.of(agent_id=agent_id)
        assert len(world.asked) == 3
        await world.of(agent_id="b")
        assert len(world.asked) == 4

    in_world(test)
