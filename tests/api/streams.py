"""Reads a server-sent stream straight from the application, chunk by chunk, and leaves when it has heard enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message

from horarium.testing.service import TOKEN


class Listener:
    """Runs on a loop of its own; `heard` are the events, as id, kind and data."""

    def __init__(self, app: ASGIApp, *, headers: Mapping[str, str | None] | None = None, query: str = "") -> None:
        self._app = app
        given = {"authorization": f"Bearer {TOKEN}", **(headers or {})}
        self._given = {name: value for name, value in given.items() if value is not None}
        self._query = query
        self._text = ""
        self.status = 0
        self.ended = False

    @property
    def heard(self) -> list[dict[str, str]]:
        return [block for block in self._blocks if "data" in block]

    @property
    def last_id(self) -> str:
        return next((block["id"] for block in reversed(self._blocks) if "id" in block), "")

    @property
    def _blocks(self) -> list[dict[str, str]]:
        return [dict(line.split(": ", 1) for line in block.split("\n")) for block in self._text.split("\n\n")[:-1]]

    @property
    def comments(self) -> int:
        return self._text.count("\n: still here")

    def listen(self, until: Callable[[Listener], bool], meanwhile: Callable[[], object] | None = None) -> Listener:
        """`meanwhile` happens once the stream is open."""
        asyncio.run(asyncio.wait_for(self._listen(until, meanwhile), 120))
        return self

    async def _listen(self, until: Callable[[Listener], bool], meanwhile: Callable[[], object] | None) -> None:
        gone, opened = asyncio.Event(), asyncio.Event()

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.status = message.get("status", self.status)
            self._text += message.get("body", b"").decode()
            if message["type"] == "http.response.body":
                opened.set()
                if until(self):
                    gone.set()

        app = asyncio.create_task(self._run(receive, send))
        await opened.wait()
        if meanwhile is not None:
            await asyncio.to_thread(meanwhile)
        await app
        self.ended = not gone.is_set()

    async def _run(self, receive: Any, send: Any) -> None:
        headers = [(name.encode(), value.encode()) for name, value in self._given.items()]
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/events",
            "query_string": self._query.encode(),
            "headers": headers,
        }
        await self._app(scope, receive, send)
