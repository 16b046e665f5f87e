"""The transport without a network: streams, failures and time limits as a network would show them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horarium.client.inprocess import App, InProcess

START = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1")]}


@pytest.fixture
def ask(request: pytest.FixtureRequest) -> Iterator[Any]:
    made: list[httpx.Client] = []

    def make(app: App, **options: Any) -> httpx.Client:
        made.append(httpx.Client(transport=InProcess(app), base_url="http://x", **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


async def echo(scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    await send(START)
    await send(
        {"type": "http.response.body", "body": scope["raw_path"] + b"?" + scope["query_string"], "more_body": True}
    )
    await send({"type": "http.response.body", "body": message["body"]})


async def endless(_scope: Any, _receive: Any, send: Any) -> None:
    await send(START)
    while True:
        await send({"type": "http.response.body", "body": b"tick\n", "more_body": True})
        await asyncio.sleep(0.001)


async def silent(_scope: Any, _receive: Any, _send: Any) -> None:
    await asyncio.Event().wait()


async def failing(_scope: Any, _receive: Any, _send: Any) -> None:
    raise RuntimeError("no")


async def half(_scope: Any, _receive: Any, send: Any) -> None:
    await send(START)
    raise RuntimeError("no")


def test_a_request_reaches_the_application_and_its_answer_us(ask: Any) -> None:
    answer = ask(echo).post("/a%2Fb", params={"q": "1"}, content=b"!body")
    assert (answer.status_code, answer.headers["x-a"], answer.content) == (200, "1", b"/a%2Fb?q=1!body")


def test_a_stream_without_end_can_be_read_and_left(ask: Any) -> None:
    with ask(endless).stream("GET", "/") as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(3)] == ["tick"] * 3


@pytest.mark.parametrize("app", [failing, half], ids=["before", "within"])
def test_an_application_that_fails_is_a_broken_connection(ask: Any, app: App) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        ask(app).get("/")


def test_an_application_that_is_silent_runs_into_the_time_limit(ask: Any) -> None:
    with pytest.raises(httpx.ReadTimeout):
        ask(silent, timeout=0.05).get("/")


def test_several_threads_may_ask_at_once(ask: Any) -> None:
    client = ask(echo)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda n=n: found.append(client.get(f"/{n}").content)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"/{n}?".encode() for n in range(8)]
