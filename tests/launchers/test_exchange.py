"""One call on the wire: what is written, and what is made of answers that come early, late, in pieces or not at all."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, Received, Route, request_for

from horarium.core.document.definition import Action
from horarium.core.lifecycle.outcome import Finished, Outcome, Refused, RunFailed, RunTimedOut, Unknown, Unreachable
from horarium.launchers import http as answers
from horarium.launchers.exchange import MAX_HEAD_BYTES, MAX_INTERIM, MAX_PIECES, Exchange, InvalidRequest
from horarium.launchers.http import HttpLauncher
from horarium.launchers.payload import MAX_RESULT_BYTES
from horarium.launchers.requests import BadAction, Outbox, read
from horarium.launchers.ssrf import AddressGuard, AddressPolicy


def saying(*parts: bytes) -> Route:
    """A far end that writes these parts, one packet each, and hangs up."""

    async def say(_received: Received, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)

    return say


def launch(route: Route, **changes: Any) -> tuple[Outcome, list[Received]]:
    async def run() -> tuple[Outcome, list[Received]]:
        async with HttpFarEnd(routes={"/it": route}) as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            target = {"url": far.url("/it"), **changes.pop("target", {})}
            outcome = await launcher.launch(request_for("http", target, **changes))
            await launcher.close()
            return outcome, far.received

    return asyncio.run(run())


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([OK + b"content-length: 2\r\n\r\n{}"], Finished({})),
        ([bytes([each]) for each in OK + b"content-length: 2\r\n\r\n{}"], Finished({})),
        ([OK, b"transfer-encoding: chunked\r\n\r\n", b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"], Finished({})),
        ([OK, b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-after: 1\r\n\r\n"], Finished({})),
        ([b"HTTP/1.0 200 OK\r\n\r\n", b"until the end"], Finished("until the end")),
        ([OK + b"\r\n", b"until the end"], Finished("until the end")),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\n\r\n{}"], Finished({})),
        ([b"HTTP/1.1 103 Hints\r\nlink: </x>\r\n\r\n", OK + b"content-length: 0\r\n\r\n"], Finished(None)),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], Finished(None)),
        ([OK + b"content-length: 2\r\n\r\n{}HTTP/1.1 500 smuggled\r\n\r\n"], Finished({})),
        ([OK + b"content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}"], Finished("{}")),
        ([b"HTTP/1.1 202 Accepted\r\nlocation: /jobs/\xc3\xbc\xff\r\ncontent-length: 0\r\n\r\n"], None),
        ([b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"], Unknown),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_INTERIM + 1) + OK + b"\r\n"], Unknown),
        ([OK + b"x: " + b"a" * (MAX_HEAD_BYTES + 200_000)], Unknown),
        ([OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}"], Unknown),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], Unknown),
        ([b"HTTP/1.1 200"], Unknown),
    ],
    ids=lambda value: value[0][:60].decode("latin-1") if isinstance(value, list) else "",
)
def test_an_answer_is_read_however_it_comes(parts: list[bytes], expected: Any) -> None:
    outcome, _ = launch(saying(*parts))
    if expected is None:
        assert getattr(outcome, "reference", None) == "/jobs/ü\ufffd"
    else:
        assert isinstance(outcome, expected) if isinstance(expected, type) else outcome == expected


def test_an_answer_in_very_many_pieces_is_cut_and_says_so() -> None:
    pieces = b"1\r\nx\r\n" * (MAX_PIECES + 10)
    outcome, _ = launch(saying(OK + b"transfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"))
    assert isinstance(outcome, Finished)
    assert outcome.result["truncated"] is True


def test_an_answer_of_the_greatest_size_is_kept_whole() -> None:
    body = b'"' + b"x" * (MAX_RESULT_BYTES - 2) + b'"'
    outcome, _ = launch(saying(OK + f"content-length: {len(body)}\r\n\r\n".encode() + body))
    assert outcome == Finished("x" * (MAX_RESULT_BYTES - 2))


def test_others_have_their_turn_while_a_large_answer_is_read() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> Outcome:
        pieces = b"1\r\nx\r\n" * 9_000
        route = saying(OK + b"transfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
        async with HttpFarEnd(routes={"/it": route}) as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            counting = asyncio.ensure_future(count())
            outcome = await launcher.launch(request_for("http", {"url": far.url("/it")}))
            counting.cancel()
            await launcher.close()
            return outcome

    assert asyncio.run(run()) == Finished("x" * 9_000)
    # 54 KB in slices of 16 KiB: at least one turn between each.
    assert turns > 3


def test_a_large_event_arrives_whole() -> None:
    outcome, [received] = launch(saying(OK + b"content-length: 0\r\n\r\n"), inputs={"text": "x" * 3_000_000})
    assert outcome == Finished(None)
    assert len(received.event["data"]["inputs"]["text"]) == 3_000_000


def test_an_event_that_is_too_large_is_refused_before_anybody_is_dialled() -> None:
    outcome, received = launch(saying(OK + b"\r\n"), inputs="x" * (4 * 1_048_576 - 10), labels={"a": "y" * 1_000})
    assert isinstance(outcome, Refused)
    assert "the event has" in outcome.error
    assert received == []


@pytest.mark.parametrize("field", ["labels", "memo"])
def test_an_event_that_is_no_json_is_refused(field: str) -> None:
    outcome, received = launch(saying(OK + b"\r\n"), **{field: {"a": float("nan")}})
    assert outcome == Refused("the event contains NaN or an infinite number, which is not valid JSON")
    assert received == []


def test_what_was_answered_before_the_connection_broke_counts() -> None:
    async def answer_and_reset(_received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"content-length: 2\r\n\r\n{}")
        await writer.drain()
        await asyncio.sleep(0.05)
        _reset(writer)

    assert launch(answer_and_reset)[0] == Finished({})


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200", OK + b"content-length: 9\r\n\r\nhalf"])
def test_a_connection_that_is_reset_is_unknown(begun: bytes) -> None:
    async def reset(_received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await writer.drain()
        await asyncio.sleep(0.01)
        _reset(writer)

    assert isinstance(launch(reset)[0], Unknown)


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN: SO_LINGER with no time to linger."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize(
    ("status", "expected"),
    [("400 Bad", Refused("HTTP 400")), ("500 Oops", RunFailed("HTTP 500", "provider_error"))],
)
def test_a_status_counts_although_its_body_never_comes(
    status: str, expected: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_SNIPPET_SECONDS", 0.05)

    async def head_only(_received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 9\r\n\r\n".encode())
        await asyncio.sleep(30)

    assert launch(head_only)[0] == expected


def test_a_result_that_never_comes_is_late() -> None:
    async def head_only(_received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"content-length: 9\r\n\r\n")
        await asyncio.sleep(30)

    assert isinstance(launch(head_only, seconds=1)[0], RunTimedOut)


def test_a_connection_is_for_one_call_and_says_so() -> None:
    _, [received] = launch(saying(OK + b"content-length: 0\r\n\r\n"))
    assert received.headers["connection"] == "close"
    assert received.headers["host"].startswith("127.0.0.1:")
    assert received.headers["user-agent"] == "horarium"
    assert received.headers["accept-encoding"] == "identity"


def test_the_query_is_sent_and_the_fragment_is_not() -> None:
    async def run() -> list[str]:
        async with HttpFarEnd() as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            for path in ("/a?b=c#d", "?q", "", "/ü"):
                await launcher.launch(request_for("http", {"url": far.url(path)}))
            await launcher.close()
            return [each.path for each in far.received]

    assert asyncio.run(run()) == ["/a?b=c", "/?q", "/", "/%C3%BC"]


@pytest.mark.parametrize("host", [".", "..", ".a", "a..b", "a" * 64, "a." + "b" * 64])
def test_a_name_that_nobody_can_look_up_or_verify_is_refused_before_anybody_is_dialled(host: str) -> None:
    outcome, received = launch(saying(OK + b"\r\n"), target={"url": f"https://{host}/"})
    assert isinstance(outcome, Refused)
    assert "host" in outcome.error
    assert received == []


@pytest.mark.parametrize("host", ["-", "a_b", "a", "*"])
def test_a_deadline_within_the_handshake_has_sent_nothing_whatever_the_name(host: str) -> None:
    async def to_loopback(_host: str, _port: int, _group: str) -> Sequence[str]:
        return ["127.0.0.1"]

    async def run() -> Outcome:
        async with HttpFarEnd() as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True), to_loopback))
            url = f"https://{host}:{far.port}/"
            return await launcher.launch(request_for("http", {"url": url}, seconds=0.2))

    # The far end does not speak TLS and waits for more.
    assert asyncio.run(run()) == Unreachable("no response before the deadline")


@pytest.mark.parametrize("traceparent", ["a\r\nX-Forged: 1", "ü"], ids=["newline", "letter"])
def test_a_header_that_cannot_be_written_reaches_nobody(traceparent: str) -> None:
    outcome, received = launch(saying(OK + b"\r\n"), traceparent=traceparent)
    assert isinstance(outcome, Refused)
    assert received == []


def test_a_request_that_cannot_be_written_says_so() -> None:
    with pytest.raises(InvalidRequest):
        Exchange("GET", b"/a b", [(b"host", b"h")], b"")


# What was read of an action


def http_action(**target: Any) -> Action:
    return Action("http", {"url": "https://h.example/", **target})


def test_an_action_is_read_once_and_told_from_another_that_looks_like_it() -> None:
    outbox = Outbox()
    one, other = http_action(headers={"x": "1"}), http_action(headers={"x": "2"})
    assert outbox.outgoing(one) is outbox.outgoing(one)
    assert outbox.outgoing(other).headers == {"x": "2"}
    assert outbox.outgoing(one) == read(one)


def test_what_is_remembered_is_bounded_and_never_taken_for_another() -> None:
    outbox = Outbox()
    for n in range(5_000):
        assert outbox.outgoing(http_action(headers={"x": str(n)})).headers == {"x": str(n)}
    assert len(outbox._read) <= 1_024


def test_an_action_that_is_wrong_is_wrong_every_time() -> None:
    outbox, wrong = Outbox(), http_action(method="TRACE")
    for _ in range(2):
        with pytest.raises(BadAction, match="method must be one of"):
            outbox.outgoing(wrong)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://h.example/", (False, "h.example", 80, b"h.example")),
        ("https://H.example:443/", (True, "h.example", 443, b"h.example")),
        ("https://h.example:8443/", (True, "h.example", 8443, b"h.example:8443")),
        ("http://[::1]:9/", (False, "::1", 9, b"[::1]:9")),
        ("http://xn--fa-hia.example/", (False, "xn--fa-hia.example", 80, b"xn--fa-hia.example")),
    ],
)
def test_an_address_is_taken_apart(url: str, place: tuple[bool, str, int, bytes]) -> None:
    found = read(http_action(url=url)).place
    assert (found.secure, found.host, found.port, found.authority) == place
