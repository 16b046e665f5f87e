"""A call to an agent: what leaves us, and what is made of far ends that hang, drip, flood, lie and go away."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, Received, Route, answer

from horarium.launchers.a2a.client import (
    A2AClient,
    AgentAddressForbidden,
    Called,
    CardFailed,
    HttpStatus,
    LostReply,
    RequestNotSent,
    TooLarge,
)
from horarium.launchers.a2a.dialect import Dialect, Malformed, MessageSeen, RpcFailed, get_body
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

TOKEN = "secret-of-the-agent"
SAID = {"jsonrpc": "2.0", "id": "r1", "result": {"kind": "message", "parts": [{"kind": "text", "text": "done"}]}}
DONE = MessageSeen("done", None)
PATIENCE = 30.0
# No test speaks TLS; reading the certificates of the world takes longer than a call.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# What only ends because of its time limit is given this much: enough to connect on the busiest machine.
SHORT = 2.0


def client(**changes: Any) -> A2AClient:
    return A2AClient(FixedClock(), AddressGuard(AddressPolicy(allow_loopback=True), **changes), NO_TLS)


async def call(url: str, a2a: A2AClient | None = None, **changes: Any) -> Called:
    given: dict[str, Any] = {
        "namespace": "default",
        "dialect": Dialect.V1_0,
        "body": get_body(Dialect.V1_0, "t1", "r1"),
        "token": TOKEN,
        "seconds": PATIENCE,
        "most_bytes": 100_000,
    }
    return await (a2a or client()).call(url, **{**given, **changes})


def asked(route: Route | bytes, **changes: Any) -> Called:
    async def run() -> Called:
        far = HttpFarEnd(answers={"/it": route}) if isinstance(route, bytes) else HttpFarEnd(routes={"/it": route})
        async with far:
            return await call(far.url("/it"), **changes)

    return asyncio.run(run())


def test_a_call_carries_what_its_dialect_wants_and_the_token_only_where_it_is_given() -> None:
    async def run() -> list[Received]:
        async with HttpFarEnd(answers={"/it": answer("200 OK", SAID)}) as far:
            assert await call(far.url("/it"), headers={"X-Workspace-ID": "system:scheduler"}) == DONE
            assert await call(far.url("/it"), dialect=Dialect.V0_3, token=None) == DONE
            return far.received

    new, old = asyncio.run(run())
    assert new.method == "POST"
    assert orjson.loads(new.body) == get_body(Dialect.V1_0, "t1", "r1")
    expected = {
        "a2a-version": "1.0",
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {TOKEN}",
        "connection": "close",
        "content-type": "application/json",
        "x-workspace-id": "system:scheduler",
    }
    assert expected.items() <= new.headers.items()
    assert not {"a2a-version", "authorization", "x-workspace-id"} & old.headers.keys()


def saying(*parts: bytes, stay: bool = False) -> Route:
    async def say(_received: Received, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if stay:
            await asyncio.sleep(2 * PATIENCE)

    return say


async def drip(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def interim(_received: Received, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def reset(_received: Received, writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def flood(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 52428800\r\n\r\n")
    for _ in range(800):
        writer.write(b" " * 65_536)
        await writer.drain()


async def endless(_received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b" " * 4_096 + b"\r\n")
        await writer.drain()


OK = b"HTTP/1.1 200 OK\r\n"
STREAM = OK + b"content-type: text/event-stream; charset=utf-8\r\n\r\ndata: {}\n\n"
PACKED = OK + b"content-encoding: gzip\r\ncontent-length: 50000000\r\n\r\n\x1f\x8b"


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (reset, LostReply),
        (saying(), LostReply),
        (saying(b"HTTP/1.1 200"), LostReply),
        (saying(OK + b"content-length: 100\r\n\r\n{}"), LostReply),
        (saying(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}"), LostReply),
        (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), LostReply),
        (flood, TooLarge),
        (endless, TooLarge),
        (saying(STREAM, stay=True), Malformed),
        (saying(PACKED, stay=True), Malformed),
        (saying(OK + b"content-length: 5\r\n\r\n" + orjson.dumps(SAID)), Malformed),
        (answer("200 OK", "<html>welcome</html>"), Malformed),
        (answer("200 OK", b"\xff\xfe{}"), Malformed),
        (answer("200 OK", b"[" * 90_000), Malformed),
        (answer("200 OK", b"[]"), Malformed),
        (answer("204 No Content"), Malformed),
        (answer("202 Accepted", {"queued": True}), Malformed),
        (answer("200 OK", {**SAID, "id": "r2"}), Malformed),
        (answer("200 OK", {"result": SAID["result"]}), Malformed),
        (answer("200 OK", {"id": None, "error": {"code": -32700, "message": "?"}}), RpcFailed(-32700, "?")),
        (answer("200 OK", SAID, content_encoding="identity"), DONE),
        (answer("201 Created", SAID), DONE),
    ],
)
def test_each_far_end_gets_an_end(route: Route | bytes, expected: Any) -> None:
    got = asked(route)
    assert isinstance(got, expected) if isinstance(expected, type) else got == expected


def test_who_never_comes_to_an_end_is_left_when_the_time_is_up() -> None:
    async def run() -> Sequence[Called]:
        routes: dict[str, Route] = {"/hang": saying(stay=True), "/drip": drip, "/interim": interim}
        async with HttpFarEnd(routes=routes) as far:
            return await asyncio.gather(*(call(far.url(path), seconds=SHORT) for path in routes))

    for got in asyncio.run(run()):
        assert isinstance(got, LostReply)


def test_a_call_that_is_given_up_hangs_up() -> None:
    async def run() -> None:
        arrived, left = asyncio.Event(), asyncio.Event()

        async def speak(received: Received, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            try:
                await drip(received, writer)
            except ConnectionError:
                left.set()

        async with HttpFarEnd(routes={"/it": speak}) as far, asyncio.timeout(PATIENCE):
            calling = asyncio.ensure_future(call(far.url("/it")))
            await arrived.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await left.wait()

    asyncio.run(run())


REFUSED = {"jsonrpc": "2.0", "id": "r1", "error": {"code": -32601, "message": f"no, {TOKEN}"}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            answer("302 Found", location="http://127.0.0.1:1/"),
            HttpStatus(302, "HTTP 302: redirects are not followed; set the final URL"),
        ),
        (answer("429 Too Many", retry_after="7"), HttpStatus(429, "HTTP 429", "7")),
        (answer("503 Away", "later", retry_after="x" * 999), HttpStatus(503, "HTTP 503: later", "x" * 99 + "…")),
        (answer("401 No", f"not {TOKEN}"), HttpStatus(401, "HTTP 401: not …")),
        (answer("500 Oh", {"error": {"code": -32603}}), HttpStatus(500, 'HTTP 500: {"error":{"code":-32603}}')),
        # Not spoken here, whatever status it is given; and no error repeats the token.
        (answer("404 Not Found", REFUSED), RpcFailed(-32601, "no, …")),
        (answer("200 OK", REFUSED), RpcFailed(-32601, "no, …")),
    ],
)
def test_a_status_is_told_as_it_came(raw: bytes, expected: Any) -> None:
    assert asked(raw) == expected


def test_what_reaches_nobody_is_known_to_have_reached_nobody() -> None:
    async def never(_host: str, _port: int, _group: str) -> Sequence[str]:
        await asyncio.sleep(2 * PATIENCE)
        return []

    async def run() -> None:
        async with HttpFarEnd() as far:
            url = far.url("/it")
            assert isinstance(await call(url, seconds=0), RequestNotSent)
        assert isinstance(await call(url), RequestNotSent)
        slow = client(resolver=never)
        assert await call("http://slow.test/", slow, seconds=0.01) == RequestNotSent("no connection within 0.01 s")
        card = await slow.fetch_card("http://slow.test/", namespace="default", seconds=0.01)
        assert card == CardFailed("no connection within 0.01 s", answered=False)

    asyncio.run(run())


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"url": "http://127.0.0.1/", "a2a": A2AClient(FixedClock(), AddressGuard(), NO_TLS)}, "loopback"),
        ({"url": "ftp://agent.test/"}, "must be http or https"),
        ({"url": "http://user:hunter2@agent.test/"}, "credentials"),
        ({"url": "http://"}, "host"),
        ({"url": "http://agent.test/" + "x" * 3_000}, "2048"),
        ({"token": "a\r\nx-evil: 1"}, "token"),
        ({"token": "ä"}, "token"),
        ({"headers": {"traceparent": "a\r\nb: c"}}, "cannot be encoded"),
        ({"body": {"id": "r1", "params": deep(300)}}, "nested"),
        ({"body": {"id": "r1", "params": float("nan")}}, "NaN"),
        ({"body": {"id": "r1", "params": "x" * 5_000_000}}, "at most"),
    ],
)
def test_what_may_not_be_sent_is_not(changes: dict[str, Any], says: str) -> None:
    got = asyncio.run(call(**{"url": "http://127.0.0.1:1/", **changes}))
    assert isinstance(got, AgentAddressForbidden)
    assert says in got.error
    assert "hunter2" not in got.error
    assert "evil" not in got.error
