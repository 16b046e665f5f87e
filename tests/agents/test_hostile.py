"""Agents that mean harm, or are broken: a token stays where it belongs, and every reply has a bound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents.launching import launcher, request
from launchers.far_ends import HttpFarEnd, Received, answer

from horarium.core.lifecycle.outcome import Accepted, Asked, Finished, Outcome, Refused, RunFailed, RunTimedOut
from horarium.launchers.launcher import AgentLine

CARD = "/.well-known/agent-card.json"
TOKEN = "hor_agent_token"
MANY = 50 * 1024 * 1024


def card_for(url: str) -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "wolf", "version": "1", "supportedInterfaces": [interface], "capabilities": {}}


def message(received: Received, text: str) -> bytes:
    said = {"message": {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": text}]}}
    return answer("200 OK", {"jsonrpc": "2.0", "id": received.event["id"], "result": said})


async def _answers(received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return message(received, "hello")


async def _refuses(_received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("404 Not Found")


async def _many(received: Received, writer: asyncio.StreamWriter) -> None:
    head = f'{{"jsonrpc":"2.0","id":{json.dumps(received.event["id"])},"result":{{"message":{{"parts":[{{"text":"'
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {MANY}\r\n\r\n{head}".encode())
    for _ in range(MANY // 65_536):
        writer.write(b"x" * 65_536)
        await writer.drain()


async def _endless(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"6\r\n      \r\n" * 1_000)
        await writer.drain()


async def _events(_received: Received, writer: asyncio.StreamWriter) -> None:
    """One event after the other, none of which is the last."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"6\r\n:ping\n\r\n" * 1_000)
        await writer.drain()


async def _trickle(_received: Received, writer: asyncio.StreamWriter) -> None:
    """A byte now and then keeps any timeout of a single read from passing."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def _away(_received: Received, _writer: asyncio.StreamWriter) -> bytes:
    return answer("307 Temporary Redirect", location="http://localhost:1/elsewhere")


@asynccontextmanager
async def far(route: Any, **routes: Any) -> AsyncIterator[HttpFarEnd]:
    async with HttpFarEnd() as end:
        end.routes = {"/": route, **routes}
        end.answers[CARD] = answer("200 OK", card_for(end.url("/")))
        yield end


async def launched(url: str, *, seconds: float = 30, **line: Any) -> Outcome:
    async with launcher() as made:
        asked = request(url, "hello", seconds=seconds, agent=AgentLine("wolf", url, token=TOKEN, **line))
        return await asyncio.wait_for(made.launch(asked), 60)


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("home", [_answers, _refuses], ids=["home answers", "home does not"])
def test_a_card_that_points_elsewhere_does_not_get_the_token(home: Any, allowed: bool) -> None:
    async def tell() -> tuple[Outcome, HttpFarEnd, HttpFarEnd]:
        async with far(home) as own, far(_answers) as other:
            # Another name of the same machine is another host.
            own.answers[CARD] = answer("200 OK", card_for(other.url("/", host="localhost")))
            line: dict[str, Any] = {"allowed_hosts": ("localhost",)} if allowed else {}
            return await launched(own.url("/"), **line), own, other

    outcome, own, other = asyncio.run(tell())
    assert all("authorization" not in each.headers for each in other.received)
    assert all(TOKEN.encode() not in each.body for each in other.received)
    if allowed:
        assert isinstance(outcome, Finished)
    else:
        assert other.received == []
        assert isinstance(outcome, Finished if home is _answers else Refused)
    at_home = [each for each in own.received if each.method == "POST"]
    assert all(each.headers["authorization"] == f"Bearer {TOKEN}" for each in at_home)


ENDS: dict[str, tuple[Any, float, Callable[[Outcome], bool]]] = {
    "fifty megabytes": (_many, 30, lambda it: isinstance(it, RunFailed) and it.error_class == "reply_too_large"),
    "an endless stream": (_endless, 30, lambda it: isinstance(it, RunFailed) and it.error_class == "reply_too_large"),
    "endless events": (_events, 30, lambda it: isinstance(it, RunFailed) and it.error_class == "contract_violated"),
    "a byte now and then": (_trickle, 2, lambda it: isinstance(it, RunTimedOut)),
    "a redirect": (_away, 30, lambda it: isinstance(it, Refused)),
}


@pytest.mark.parametrize(("route", "seconds", "fits"), ENDS.values(), ids=ENDS)
def test_a_reply_without_an_end_has_one(route: Any, seconds: float, fits: Callable[[Outcome], bool]) -> None:
    async def tell() -> Outcome:
        async with far(route) as end:
            return await launched(end.url("/"), seconds=seconds)

    outcome = asyncio.run(tell())
    assert fits(outcome), outcome


def test_a_card_without_an_end_does_not_keep_a_prompt_from_its_agent() -> None:
    async def tell() -> Outcome:
        async with far(_answers, **{CARD: _endless}) as end:
            return await launched(end.url("/"))

    outcome = asyncio.run(tell())
    assert isinstance(outcome, Finished), outcome


JUNK: dict[str, bytes] = {
    "no JSON": answer("200 OK", "<html>"),
    "a list": answer("200 OK", "[]", content_type="application/json"),
    "a number": answer("200 OK", "1e999"),
    "no result": answer("200 OK", {"jsonrpc": "2.0", "id": 1}),
    "an odd result": answer("200 OK", {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": 5, "status": []}}}),
    "an odd error": answer("200 OK", {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": ["y"]}}),
    "deep": answer("200 OK", "[" * 100_000, content_type="application/json"),
    "no UTF-8": answer("200 OK", b'{"result":{"message":{"parts":[{"text":"\xff\xfe"}]}}}'),
    "a lone surrogate": answer("200 OK", '{"result":{"message":{"parts":[{"text":"\\ud800"}]}}}'),
    "zero bytes": answer("200 OK", '{"result":{"message":{"parts":[{"text":"\\u0000"}]}}}'),
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_a_reply_that_makes_no_sense_is_an_outcome_and_no_exception(junk: bytes) -> None:
    async def reply(_received: Received, _writer: asyncio.StreamWriter) -> bytes:
        return junk

    async def tell() -> Outcome:
        async with far(reply) as end:
            return await launched(end.url("/"), seconds=5)

    outcome = asyncio.run(tell())
    assert not isinstance(outcome, Accepted | Asked), outcome
