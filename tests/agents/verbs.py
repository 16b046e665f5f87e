"""What the agents of the tests do, whichever generation of the SDK they speak with: the first word of a prompt says it.

| verb       | what becomes of it                                                                    |
|------------|---------------------------------------------------------------------------------------|
| echo       | a message, without a task                                                             |
| task       | a task that completes with an artifact                                                |
| slow N     | the same after N seconds                                                              |
| hold NAME  | the same after `POST /release/NAME`                                                   |
| fail       | a task that fails                                                                     |
| reject     | a task that is rejected                                                               |
| input      | a task that asks, and completes with the answer; to `ask again` it asks again          |
| auth       | a task that asks for a login, and completes when told to go on                        |
| raise      | an exception before anything was said                                                 |
| taskraise  | an exception after the task was begun                                                 |
| empty      | a task that completes without a word                                                  |
| status     | a task that completes with its text in the status only                                |
| nothing    | silence, for ever                                                                     |

`GET /executions` tells what was executed, how often and with what; `GET /requests` with which headers it came.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_HEARD = ("authorization", "x-workspace-id", "a2a-version", "traceparent", "user-agent")


@dataclass(frozen=True)
class Heard:
    """A message, as an agent got it. `resumed`: it answers a question of the task that it belongs to."""

    message_id: str
    context_id: str
    task_id: str
    text: str
    metadata: dict[str, Any]
    data: list[Any]
    resumed: bool


class Say(Protocol):
    """What an SDK lets an agent say; the words of the states are those of 0.3."""

    async def message(self, text: str) -> None: ...

    async def begin(self) -> None: ...

    async def artifact(self, text: str) -> None: ...

    async def state(self, word: str, text: str | None = None) -> None: ...


@dataclass
class Books:
    counts: Counter[str] = field(default_factory=Counter)
    heard: dict[str, Heard] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    _released: dict[str, asyncio.Event] = field(default_factory=dict)

    def released(self, name: str) -> asyncio.Event:
        return self._released.setdefault(name, asyncio.Event())

    def routes(self) -> list[Route]:
        return [
            Route("/executions", self._tell),
            Route("/requests", self._tell_requests),
            Route("/release/{name}", self._release, methods=["POST"]),
        ]

    async def _tell(self, _request: Request) -> JSONResponse:
        heard = {key: vars(each) for key, each in self.heard.items()}
        return JSONResponse({"executions": dict(self.counts), "heard": heard, "cancelled": self.cancelled})

    async def _tell_requests(self, _request: Request) -> JSONResponse:
        return JSONResponse(self.requests)

    async def _release(self, request: Request) -> JSONResponse:
        self.released(request.path_params["name"]).set()
        return JSONResponse({})

    def application(self, routes: list[Any]) -> Any:
        """Ours and the SDK's, with every call of the protocol in the books."""
        inner = Starlette(routes=[*self.routes(), *routes])

        async def outer(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and scope["method"] == "POST" and not scope["path"].startswith("/release/"):
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
                self.requests.append({name: headers[name] for name in _HEARD if name in headers})
            await inner(scope, receive, send)

        return outer


async def perform(books: Books, heard: Heard, say: Say) -> None:
    books.counts[heard.message_id] += 1
    books.heard[heard.message_id] = heard
    if heard.resumed and heard.text == "ask again":
        return await say.state("input-required", "which else?")
    if heard.resumed:
        await say.artifact(f"answered: {heard.text}")
        return await say.state("completed")
    verb, _, rest = heard.text.partition(" ")
    match verb:
        case "echo":
            await say.message(rest)
        case "raise":
            raise RuntimeError(f"raised: {rest}")
        case "nothing":
            await asyncio.Event().wait()
        case _:
            await say.begin()
            await _task(books, verb, rest, say)
    return None


async def _task(books: Books, verb: str, rest: str, say: Say) -> None:
    match verb:
        case "task":
            await _complete(say, f"done: {rest}")
        case "slow":
            await asyncio.sleep(float(rest))
            await _complete(say, f"slow: {rest}")
        case "hold":
            await books.released(rest).wait()
            await _complete(say, f"held: {rest}")
        case "fail":
            await say.state("failed", f"failed: {rest}")
        case "reject":
            await say.state("rejected", f"rejected: {rest}")
        case "input":
            await say.state("input-required", f"which {rest}?")
        case "auth":
            await say.state("auth-required", f"log in to {rest}")
        case "taskraise":
            raise RuntimeError(f"raised: {rest}")
        case "empty":
            await say.state("completed")
        case "status":
            await say.state("completed", f"status: {rest}")
        case _:
            await say.state("rejected", f"no such verb: {verb}")


async def _complete(say: Say, text: str) -> None:
    await say.artifact(text)
    await say.state("completed")
