"""How many streams may be open: so many of a token, half of all of a namespace, and so many of a process."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from horarium.api.auth import credential_of
from horarium.api.authorization import authorization_of
from horarium.api.limits import TooManyStreams
from horarium.api.problems import problem_of
from horarium.operations.caller import Caller

# Streams end when their readers like, so nobody knows when there will be room.
_TRY_AGAIN_SECONDS = 10
UNREAD_SECONDS = 60.0
"A stream whose client reads nothing for this long is closed."


class Streams:
    """Open streams of one process."""

    def __init__(self, *, of_token: int, most: int) -> None:
        self._of_token = of_token
        self._most = most
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @contextmanager
    def opened(self, token: str, namespace: str) -> Iterator[None]:
        """Raises TooManyStreams."""
        shares = {
            "all": self._most,
            f"namespace {namespace}": max(1, self._most // 2),
            f"token {token}": self._of_token,
        }
        with self._lock:
            if any(self._open[share] >= most for share, most in shares.items()):
                raise TooManyStreams(_TRY_AGAIN_SECONDS)
            self._open.update(shares.keys())
        try:
            yield
        finally:
            with self._lock:
                self._open.subtract(shares.keys())
                self._open = +self._open  # what is no longer open is forgotten


class EventStream(StreamingResponse):
    """Counts as open while it is sent: a reader who left before the first line is not counted for ever."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes], request: Request, caller: Caller) -> None:
        super().__init__(content, headers={"X-Accel-Buffering": "no"})  # nginx would hold events back by the bufferful
        self._streams: Streams = request.app.state.streams
        self._namespace = caller.namespace
        self._token = credential_of(authorization_of(request), caller.principal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_unread = False

        async def send_in_time(message: Message) -> None:
            nonlocal is_unread
            try:
                async with asyncio.timeout(UNREAD_SECONDS):
                    await send(message)
            except TimeoutError:
                is_unread = True
                raise

        try:
            with self._streams.opened(self._token, self._namespace):
                await super().__call__(scope, receive, send_in_time)
        except TooManyStreams as refused:
            await problem_of(refused)(scope, receive, send)
        except (TimeoutError, ClientDisconnect):
            if not is_unread:
                raise
