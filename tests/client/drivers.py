"""Both drivers behind one face: a test says what to ask, and each driver does it in its own way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx

from horarium.client.client import AsyncClient, Client
from horarium.client.inprocess import InProcess
from horarium.platform.client.exchange import Retries

URL = "http://horarium.test"
QUICK = Retries(base_ms=0)

Handler = Callable[[httpx.Request], httpx.Response]


class Driver:
    """`run(lambda client: client.get_run("r"))` is the answer, or the list of what an iterator gives."""

    def __init__(self, kind: str, *, app: Any = None, handler: Handler | None = None, **options: Any) -> None:
        self.kind = kind
        self._runner = asyncio.Runner()
        options = {"retries": QUICK, **options}
        below: Any = None if handler is None else httpx.MockTransport(handler)
        if kind == "sync":
            self.client: Any = Client(URL, transport=below or InProcess(app), **options)
        else:
            below = below or httpx.ASGITransport(app, raise_app_exceptions=False)
            self.client = AsyncClient(URL, transport=below, **options)

    def run(self, use: Callable[[Any], Any], *, most: int | None = None) -> Any:
        """At most `most` items of an iterator that has no end."""
        if self.kind == "sync":
            return _taken(use(self.client), most)
        return self._runner.run(_awaited(use(self.client), most))

    def close(self) -> None:
        if self.kind == "sync":
            self.client.close()
        else:
            self._runner.run(self.client.aclose())
        self._runner.close()


def _taken(answer: Any, most: int | None) -> Any:
    if not inspect.isgenerator(answer):
        return answer
    found: list[Any] = []
    try:
        while most is None or len(found) < most:
            found.append(next(answer))
    except StopIteration:
        pass
    finally:
        answer.close()
    return found


async def _awaited(answer: Any, most: int | None) -> Any:
    if not inspect.isasyncgen(answer):
        return await answer if inspect.isawaitable(answer) else answer
    found: list[Any] = []
    try:
        while most is None or len(found) < most:
            found.append(await anext(answer))
    except StopAsyncIteration:
        pass
    finally:
        await answer.aclose()
    return found
