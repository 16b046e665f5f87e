"""Turns: requests of all tokens share the threads, and each handler runs in one of them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from horarium.platform.caller import Caller
from horarium.platform.http.authentication import authorization_of, credential_of
from horarium.platform.http.connections import RateLimited, client_address, network_of

WAITING_OF_TOKEN = 200
WAIT_SECONDS = 30.0


class TooManyRequests(RateLimited):
    reason = "too_many_requests"
    says = "Too many requests with this token are in progress. Wait, then retry."


@dataclass(frozen=True, slots=True)
class Who:
    """Requester of a turn; without a token, an address, which then is its own namespace."""

    token: str
    namespace: str


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Requests at work at once: of all, of one token, of one namespace."""

    all: int
    of_token: int
    of_namespace: int


def turn_limits(pool_size: int, of_token: int | None) -> TurnLimits:
    """As many as there are connections, but one, which is left to the engine; others always find a fifth of them."""
    everybody = max(2, pool_size - 1)
    return TurnLimits(everybody, of_token or max(1, everybody // 2), everybody - max(1, everybody // 5))


@dataclass(slots=True, eq=False)
class _Waiting:
    """The loop is kept beside its future: another thread may wake it."""

    who: Who
    loop: asyncio.AbstractEventLoop
    granted: asyncio.Future[None]
    is_granted: bool = field(default=False)


class Turns:
    """Turns of one application, whichever loops request them."""

    def __init__(self, limits: TurnLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._working: Counter[str] = Counter()
        self._waiting: OrderedDict[Who, deque[_Waiting]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, who: Who) -> AsyncIterator[None]:
        """Raises TooManyRequests."""
        waiting = self._begin(who)
        if waiting is not None:
            await self._wait(waiting)
        try:
            yield
        finally:
            self._end(who)

    def _begin(self, who: Who) -> _Waiting | None:
        """None = at once."""
        with self._lock:
            queue = self._waiting.get(who)
            if queue is None and self._fits(who):
                self._take(who)
                return None
            if queue is not None and len(queue) >= WAITING_OF_TOKEN:
                raise TooManyRequests(1)
            loop = asyncio.get_running_loop()
            waiting = _Waiting(who, loop, loop.create_future())
            self._waiting.setdefault(who, deque()).append(waiting)
            return waiting

    async def _wait(self, waiting: _Waiting) -> None:
        try:
            await asyncio.wait_for(waiting.granted, WAIT_SECONDS)
        except BaseException as ended:
            if not self._withdraw(waiting):
                self._end(waiting.who)  # its turn had come just then
            if isinstance(ended, TimeoutError):
                raise TooManyRequests(1) from None
            raise

    def _withdraw(self, waiting: _Waiting) -> bool:
        with self._lock:
            if waiting.is_granted:
                return False
            self._waiting[waiting.who].remove(waiting)
            if not self._waiting[waiting.who]:
                del self._waiting[waiting.who]
            return True

    def _end(self, who: Who) -> None:
        with self._lock:
            self._give_back(who)
            while (waiting := self._next()) is not None:
                self._take(waiting.who)
                waiting.is_granted = True
                try:
                    waiting.loop.call_soon_threadsafe(_grant, waiting.granted)
                except RuntimeError:  # its loop is closed, and with it whoever waited
                    self._give_back(waiting.who)

    def _next(self) -> _Waiting | None:
        """The first whose turn it can be; whose it was stands behind the others."""
        who = next((who for who in self._waiting if self._fits(who)), None)
        if who is None:
            return None
        queue = self._waiting.pop(who)
        waiting = queue.popleft()
        if queue:
            self._waiting[who] = queue
        return waiting

    def _fits(self, who: Who) -> bool:
        limits = self._limits
        return (
            self._working[_ALL] < limits.all
            and self._working[f"namespace {who.namespace}"] < limits.of_namespace
            and self._working[f"token {who.token}"] < limits.of_token
        )

    def _take(self, who: Who) -> None:
        self._working.update(_shares(who))

    def _give_back(self, who: Who) -> None:
        self._working.subtract(_shares(who))
        for share in _shares(who):
            if not self._working[share]:
                del self._working[share]


_ALL = "all"


def _shares(who: Who) -> tuple[str, str, str]:
    return _ALL, f"namespace {who.namespace}", f"token {who.token}"


def _grant(granted: asyncio.Future[None]) -> None:
    with suppress(asyncio.InvalidStateError):  # cancelled meanwhile: whoever waited gives it back
        granted.set_result(None)


def in_turn(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Around an endpoint that is no coroutine; FastAPI would run it in whichever thread is free."""
    signature = inspect.signature(endpoint, eval_str=True)
    wants_request = "request" in signature.parameters

    @wraps(endpoint)
    async def turned(request: Request, **given: Any) -> Any:
        turns: Turns = request.app.state.turns
        if wants_request:
            given["request"] = request
        async with turns.turn(who_asks(request, given.get("caller"))):
            return await run_in_threadpool(partial(endpoint, **given))

    turned.__signature__ = signature if wants_request else _with_request(signature)  # type: ignore[attr-defined]  # what FastAPI reads
    return turned


def _with_request(signature: inspect.Signature) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [each.replace(kind=kind) for each in signature.parameters.values()]
    return signature.replace(parameters=[*own, inspect.Parameter("request", kind, annotation=Request)])


def who_asks(request: Request, caller: Caller | None) -> Who:
    """A token that nobody has looked at is worth no more than the address that shows it."""
    if caller is None:
        network = network_of(client_address(request.scope))
        return Who(f"address {network}", f"address {network}")
    return Who(credential_of(authorization_of(request), caller.principal), caller.namespace)
