"""HTTP without a network: the service's own application, asked in this process."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import httpx
from starlette.types import ASGIApp

Run = Callable[[Coroutine[Any, Any, httpx.Response]], httpx.Response]


class InProcess(httpx.BaseTransport):
    """`run` carries a coroutine to the loop that the application lives in, and its answer back."""

    def __init__(self, app: ASGIApp, run: Run) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._run = run

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        if "transfer-encoding" in asked.headers:  # httpx adds the length, and a request with both is refused
            del asked.headers["content-length"]
        return self._run(self._answer(asked))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        # As it was sent: the response unpacks what was packed.
        raw = b"".join([piece async for piece in answer.aiter_raw()])
        return httpx.Response(answer.status_code, headers=answer.headers, content=raw)
