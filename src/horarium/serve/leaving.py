"""How a server leaves that a proxy sends requests to: it says so first, and closes its door a while later.

From the first moment on its probes say no, so that a proxy which asks them sends nothing new, and each answer asks for
its connection to be closed, so that none is left open that the proxy could still use. Whatever comes all the same is
answered. Then streams end, the door is closed, and what has been begun is finished.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Leaving:
    """`draining` is heard by probes, `closing` by streams."""

    draining: threading.Event
    closing: threading.Event
    drain_seconds: float

    async def begin(self, serving: asyncio.Task[Any]) -> None:
        """Returns when the door may be closed: after a while, or when nobody serves any more."""
        self.draining.set()
        await self.linger(serving)
        self.closing.set()  # they would go on for ever

    async def linger(self, serving: asyncio.Task[Any]) -> None:
        if self.drain_seconds > 0:
            await asyncio.wait([serving], timeout=self.drain_seconds)


class LastAnswers:
    """Around the application: while it is leaving, no connection outlives its answer."""

    def __init__(self, app: ASGIApp, draining: threading.Event) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] == "http.response.start" and self._draining.is_set():
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, last)
