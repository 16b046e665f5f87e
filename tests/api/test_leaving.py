"""Whoever leaves before the answer is complete is nobody's defect: the log says nothing about it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import Message

from horarium.testing import TestService, service
from horarium.testing.service import TOKEN

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

Send = Callable[[Message], None]


def scope(method: str, path: str) -> dict[str, Any]:
    """As a server of ASGI 2.4 makes it: there a `send` to somebody who has left raises OSError."""
    headers = [(b"authorization", f"Bearer {TOKEN}".encode()), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8765),
    }


def gone_while_listening(message: Message) -> None:
    if message["type"] == "http.response.body":
        raise OSError("the reader has left")


def never_answered(message: Message) -> None:
    raise AssertionError(f"nobody is there to hear {message}")


async def ask(horarium: TestService, method: str, path: str, first: Message, hear: Send) -> None:
    told = [first, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return told.pop(0) if len(told) > 1 else told[0]

    async def send(message: Message) -> None:
        hear(message)

    await horarium.parts.api(scope(method, path), receive, send)


@pytest.mark.parametrize(
    ("method", "path", "first", "hear"),
    [
        ("GET", "/api/events", {"type": "http.request", "body": b""}, gone_while_listening),
        ("POST", "/api/schedules", {"type": "http.request", "body": b"{", "more_body": True}, never_answered),
    ],
    ids=["listener", "half-a-body"],
)
def test_who_leaves_leaves_no_line_in_the_log(
    service_url: str, method: str, path: str, first: Message, hear: Send
) -> None:
    log = io.StringIO()
    with service(database=service_url, log_to=log) as horarium:
        asyncio.run(ask(horarium, method, path, first, hear))
    assert log.getvalue() == ""
