"""A transport that sends the requests of a synchronous client to an ASGI application in this process.

The application runs in an event loop of the transport, so a call may come from any thread. Bodies are streamed, so
endless streams can be read. `httpx.ASGITransport` is the alternative for coroutines; it returns a body when it is
complete.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping
from concurrent.futures import Future
from typing import Any

import httpx

_Message = MutableMapping[str, Any]
App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]

_ENDED: _Message = {"type": "ended"}


class InProcess(httpx.BaseTransport):
    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        asked = self._running().start(_ask(self._app, _scope(request), request.read(), messages))
        body = _Body(messages, asked, request.extensions.get("timeout", {}).get("read"))
        try:
            head = body.next()
        except BaseException:
            body.close()
            raise
        if head["type"] != "http.response.start":
            raise httpx.RemoteProtocolError("the application ended without an answer", request=request)
        return httpx.Response(head["status"], headers=head.get("headers", []), stream=body)

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    def _running(self) -> _Loop:
        with self._lock:
            if self._loop is None:
                self._loop = _Loop()
            return self._loop


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="horarium-in-process", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # which ends in good order what is left
            runner.get_loop().run_forever()


class _Body(httpx.SyncByteStream):
    def __init__(self, messages: queue.SimpleQueue[_Message], asked: Future[None], timeout: float | None) -> None:
        self._messages = messages
        self._asked = asked
        self._timeout = timeout

    def next(self) -> _Message:
        try:
            return self._messages.get(timeout=self._timeout)
        except queue.Empty:
            raise httpx.ReadTimeout("the application took too long") from None

    def __iter__(self) -> Iterator[bytes]:
        more = True
        while more:
            message = self.next()
            if message["type"] != "http.response.body":
                raise httpx.RemoteProtocolError("the application ended in the middle of its answer")
            more = message.get("more_body", False)
            yield message.get("body", b"")

    def close(self) -> None:
        """Whoever does not want the rest has hung up."""
        self._asked.cancel()


async def _ask(app: App, scope: _Message, body: bytes, messages: queue.SimpleQueue[_Message]) -> None:
    given = False

    async def receive() -> _Message:
        nonlocal given
        if given:
            await asyncio.Event().wait()  # the caller hangs up by ending this task
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: _Message) -> None:
        messages.put(message)

    try:
        await app(scope, receive, send)
    except Exception:
        pass  # an application that fails has ended without an answer, as a server would show it
    finally:
        messages.put(_ENDED)


def _scope(request: httpx.Request) -> _Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 123),
        "root_path": "",
    }
