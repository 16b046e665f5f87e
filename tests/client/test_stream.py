"""The stream of events: how its text is read, and how a break is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from client.drivers import Driver

from horarium.platform.client import errors
from horarium.platform.client.exchange import Parser, ServerEvent


def read(*chunks: str) -> list[ServerEvent]:
    parser = Parser()
    return [message for chunk in chunks for message in parser.feed(chunk)]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("data: a\n\n", [ServerEvent("a")]),
        ("data:a\n\n", [ServerEvent("a")]),
        ("data:  a\n\n", [ServerEvent(" a")]),
        ("data: a\ndata: b\n\n", [ServerEvent("a\nb")]),
        ("data\n\n", [ServerEvent("")]),
        ("event: x\nid: 7\ndata: a\n\n", [ServerEvent("a", "x", "7")]),
        ("id: 7\ndata: a\n\ndata: b\n\n", [ServerEvent("a", id="7"), ServerEvent("b", id="7")]),
        ("id: 7\n\ndata: b\n\n", [ServerEvent("b", id="7")]),
        ("id: 7\nid\ndata: a\n\n", [ServerEvent("a")]),
        ("id: 7\nid: a\0b\ndata: a\n\n", [ServerEvent("a", id="7")]),
        (": comment\n\n", []),
        ("event: x\n\ndata: a\n\n", [ServerEvent("a")]),
        ("colour: red\ndata: a\n\n", [ServerEvent("a")]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", [ServerEvent("a"), ServerEvent("b"), ServerEvent("c")]),
        ("\ufeffdata: a\n\n", [ServerEvent("a")]),
        ("data: a\u2028b\n\n", [ServerEvent("a\u2028b")]),
        ("data: unfinished\n", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says(text: str, messages: list[ServerEvent]) -> None:
    assert read(text) == messages
    assert read(*text) == messages  # cut between any two characters


def test_the_server_says_how_long_to_wait_before_coming_back() -> None:
    parser = Parser()
    list(parser.feed("retry: 2500\nretry: soon\nretry: 99999999999\n"))
    assert parser.retry_seconds == 2.5


@pytest.mark.parametrize("text", ["x" * 1_100_000, "data: " + "x" * 600_000 + "\ndata: " + "x" * 600_000 + "\n"])
def test_an_event_without_end_is_refused(text: str) -> None:
    with pytest.raises(errors.UnexpectedAnswer, match="too long"):
        read(text)


class Streams:
    """One connection after the other, each with its own text, or broken in the middle."""

    def __init__(self, *script: Any) -> None:
        self._script = list(script)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step = self._script.pop(0)
        match step:
            case int():
                return httpx.Response(step, json={"message": "no"})
            case str():
                return httpx.Response(200, stream=Body(step), headers={"content-type": "text/event-stream"})
            case _:
                raise step("broken", request=request)

    @property
    def resumed_from(self) -> list[str | None]:
        return [request.headers.get("last-event-id") for request in self.asked]


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """`!` at the end: the connection breaks there."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[bytes]:
        yield self._text.removesuffix("!").encode()
        if self._text.endswith("!"):
            raise httpx.ReadError("broken")

    async def __aiter__(self) -> Any:
        for chunk in self:
            yield chunk


FIRST = 'retry: 0\nid: 1\nevent: schedule_dispatch\ndata: {"schedule_id": "s", "at": "2026-03-01T00:00:00Z"}\n\n'
SECOND = 'id: 2\ndata: {"kind": "schedule_skipped", "reason": "calendar"}\n\n'


def ids(entries: list[Any]) -> list[str]:
    return [entry.id for entry in entries]


def test_entries_are_values(make_driver: Callable[..., Driver]) -> None:
    first, second = make_driver(handler=Streams(FIRST + SECOND)).run(lambda c: c.events(), most=2)
    assert (first.id, first.kind, first.schedule_id) == ("1", "schedule_dispatch", "s")
    assert (second.id, second.kind, second.reason) == ("2", "schedule_skipped", "calendar")
    assert first.at is not None


@pytest.mark.parametrize("end", ["", "!", "id: 9\ndata: half"], ids=["closed", "broken", "half"])
def test_a_break_is_taken_up_where_it_broke(make_driver: Callable[..., Driver], end: str) -> None:
    server = Streams(FIRST + end, SECOND, 204)
    found = make_driver(handler=server).run(lambda c: c.events())
    assert ids(found) == ["1", "2"]
    # The id of half an event does not count: the whole of it must come again.
    assert server.resumed_from == [None, "1", "2"]


def test_a_stream_may_go_on_from_an_earlier_one(make_driver: Callable[..., Driver]) -> None:
    server = Streams(204)
    assert make_driver(handler=server).run(lambda c: c.events(last_event_id="41")) == []
    assert server.resumed_from == ["41"]
    assert server.asked[0].headers["accept"] == "text/event-stream"


def test_a_server_that_is_away_for_a_moment_is_waited_for(make_driver: Callable[..., Driver]) -> None:
    server = Streams("retry: 0\n\n", httpx.ConnectError, 503, FIRST, 204)
    assert ids(make_driver(handler=server).run(lambda c: c.events())) == ["1"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([401], errors.Unauthorized),
        ([404], errors.NotFound),
        ([201], errors.UnexpectedAnswer),
        (["retry: 0\n\n", *[httpx.ConnectError] * 9], errors.ServerUnavailable),
        (["retry: 0\n\n", *[""] * 9], errors.ServerUnavailable),
    ],
    ids=["stranger", "no-stream", "odd", "gone", "empty"],
)
def test_what_no_waiting_mends_is_raised(make_driver: Callable[..., Driver], script: list[Any], kind: type) -> None:
    with pytest.raises(kind):
        make_driver(handler=Streams(*script)).run(lambda c: c.events())


def test_data_that_is_not_json_is_text(make_driver: Callable[..., Driver]) -> None:
    [first, second] = make_driver(handler=Streams("data: hello\n\ndata: [1]\n\n")).run(lambda c: c.events(), most=2)
    assert first.raw["text"] == "hello"
    assert second.raw["data"] == [1]
