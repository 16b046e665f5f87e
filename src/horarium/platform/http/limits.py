"""Limits of the HTTP server: turns of tokens at the threads, bytes of request bodies and of pages."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Message, Receive

from horarium.core.document.json_values import UnreadableEntry, unreadable_of
from horarium.errors import HorariumError
from horarium.features.resources import Resources
from horarium.platform.caller import Caller
from horarium.platform.database.statements import fitting
from horarium.platform.http.authentication import authorization_of, credential_of
from horarium.platform.http.connections import RateLimited, client_address, network_of
from horarium.platform.ids import id_text
from horarium.platform.wire import Answer, UnreadableRow, encode

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


UNKNOWN_CALLER_BYTES: Final = 65_536
SHARED_BYTES: Final = 32 * 1_048_576


class BodyTooLarge(Exception):
    def __init__(self, limit: int, *, known: bool) -> None:
        rule = "The maximum request body is" if known else "The maximum request body without a valid token is"
        super().__init__(f"{rule} {limit} bytes.")


class BodiesFull(Exception):
    def __init__(self) -> None:
        super().__init__(
            "Too many request bodies of unauthenticated callers are in memory. Retry, or send "
            "`Authorization: Bearer …`."
        )


class BodyBudget:
    """The bytes that bodies of unknown callers may hold together, in one process."""

    def __init__(self, most: int = SHARED_BYTES) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._used = 0
        self._shares: set[Share] = set()

    @property
    def used(self) -> int:
        return self._used

    def take(self, size: int, share: Share | None = None) -> None:
        """Raise BodiesFull and take nothing if too little is left, and no unfinished body holds more than this one."""
        with self._lock:
            while share is not None and self._used + size > self._most and self._end_largest(share.held + size):
                pass
            if self._used + size > self._most:
                raise BodiesFull
            self._used += size
            if share is not None:
                share.held += size
                self._shares.add(share)

    def give_back(self, size: int) -> None:
        with self._lock:
            self._used -= size

    def leave(self, share: Share) -> None:
        with self._lock:
            self._drop(share)

    def _end_largest(self, most: int) -> bool:
        """End the unfinished body that holds most, if that is more than `most`. One that is whole is worked on."""
        unfinished = [each for each in self._shares if each.unfinished]
        largest = max(unfinished, key=lambda each: each.held, default=None)
        if largest is None or largest.held <= most:
            return False
        self._drop(largest)
        largest.end()
        return True

    def _drop(self, share: Share) -> None:
        self._used -= share.held
        share.held = 0
        self._shares.discard(share)


class Share:
    """The bytes that one body holds of the budget. `end` is called when they are taken away."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.held = 0
        self.unfinished = True
        self.end = end


class RequestBody:
    """The body of one request. `receive` counts it as it comes; `length` is the one that the request declares."""

    def __init__(self, receive: Receive, budget: BodyBudget, *, most: int, length: int | None) -> None:
        self._receive = receive
        self._budget = budget
        self._share = Share(self._lose)
        self._most = most
        self._limit = min(UNKNOWN_CALLER_BYTES, most)
        self._length = length or 0
        self._seen = 0
        self._lock = threading.Lock()  # handlers learn the caller in a thread
        self._counts = True  # until the caller is known, or the request is over
        self._lost = False
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Task[Message]] | None = None

    def expect_credential(self) -> None:
        """Allow as much as a known caller may send: the credential stands in the body."""
        self._limit = self._most

    def limit_to(self, size: int) -> None:
        self._limit = min(size, self._most)

    def release(self) -> None:
        """Give back the share of the budget, once the caller is known or the request is over."""
        with self._lock:
            self._counts = False
        self._budget.leave(self._share)

    async def receive(self) -> Message:
        self._check(self._length)
        message = await (self._next() if self._share.held else self._receive())
        size = len(message.get("body", b""))
        self._seen += size
        self._check(self._seen)
        with self._lock:
            if self._lost:
                raise BodiesFull
            self._share.unfinished = bool(message.get("more_body"))
            if self._counts:
                self._budget.take(size, self._share)
        return message

    async def _next(self) -> Message:
        """Wait for the next piece of a body, or for the loss of its share."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(self._receive())
        self._waiting = loop, task
        try:
            if self._lost:
                raise BodiesFull
            return await task
        except asyncio.CancelledError:
            if self._lost and task.cancelled():
                raise BodiesFull from None
            raise
        finally:
            task.cancel()
            self._waiting = None

    def _lose(self) -> None:
        self._lost = True
        waiting = self._waiting
        if waiting is not None:
            loop, task = waiting
            loop.call_soon_threadsafe(task.cancel)

    def _check(self, size: int) -> None:
        known = not self._counts
        limit = self._most if known else self._limit
        if size > limit:
            raise BodyTooLarge(limit, known=known or limit == self._most)


def body_of(request: Request) -> RequestBody:
    body: RequestBody = request.scope["state"]["body"]
    return body


P = TypeVar("P")
T = TypeVar("T")
A = TypeVar("A", bound=Answer)

_LOG_FIELDS = ("namespace", "schedule_id", "run_id")
_OF_A_ROW = (HorariumError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def within_bytes(
    page_size: int | None, ask: Callable[[int | None], P], shown: Callable[[P], Iterable[Answer]]
) -> tuple[P, tuple[Any, ...]]:
    """A page and its rows as JSON text. One that is too large is asked for again, with as many rows as fit.

    So the page itself says where the next one begins, whatever its token is made of.
    """
    page = ask(page_size)
    rows, is_whole = cut(shown(page))
    if not is_whole:
        page = ask(len(rows))
        # None is left out now: the token of this page would lead past it.
        rows = tuple(msgspec.Raw(encode(each)) for each in shown(page))
    return page, rows


def readable(
    resources: Resources,
    what: str,
    rows: Iterable[T | UnreadableEntry],
    view: Callable[[T], Answer],
    name: Callable[[T], object],
) -> Iterator[Answer]:
    """Show each row of a list. One that cannot be read, or shown, becomes an `UnreadableRow`.

    `what` names the kind of row in the log; `name` returns the id of a row as far as it can be read.
    """
    for row in rows:
        shown = readable_row(row, view, name)
        if isinstance(shown, UnreadableRow):
            resources.damages.tell(resources.telemetry, what, shown.id, shown.detail, **log_fields(row))
        yield shown


def readable_row(row: T | UnreadableEntry, view: Callable[[T], A], name: Callable[[T], object]) -> A | UnreadableRow:
    """Show one row of a list as `readable` does, without a line in the log."""
    found = row if isinstance(row, UnreadableEntry) else unreadable_of(row)
    if not isinstance(row, UnreadableEntry):
        try:
            if found is None:
                return view(row)
            found = UnreadableEntry(name(row), found.detail)
        except _OF_A_ROW as wrong:
            found = UnreadableEntry(name(row), f"{type(wrong).__name__}: {wrong}"[:200])
    assert found is not None
    key = id_text(found.key) if isinstance(found.key, bytes) and len(found.key) == 16 else str(found.key)
    return UnreadableRow(id=key, unreadable=True, detail=found.detail)


def log_fields(row: object) -> dict[str, str]:
    """The namespace, schedule and run that a row names, as far as it can be read; an event or a row may be inside."""
    inner = getattr(row, "row", None) or getattr(row, "event", None) or row
    found = {name: getattr(inner, name, None) or getattr(row, name, None) for name in _LOG_FIELDS}
    texts = {name: id_text(value) if isinstance(value, bytes) else value for name, value in found.items()}
    return {name: value for name, value in texts.items() if isinstance(value, str)}


def next_page(path: str, after: str) -> dict[str, str]:
    """The header of an answer that is a plain array: where the rest of it is (RFC 8288)."""
    return {"Link": f'<{path}?after={quote(after, safe="")}>; rel="next"'}


def cut(shown: Iterable[Answer]) -> tuple[tuple[Any, ...], bool]:
    """The first ones that fit in a page, and whether all do."""
    texts = [encode(each) for each in shown]
    count = fitting(map(len, texts))
    return tuple(msgspec.Raw(text) for text in texts[:count]), count == len(texts)
