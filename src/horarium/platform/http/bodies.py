"""Limits of request bodies, and of the bytes of a page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.types import Message, Receive

from horarium.core.document.json_values import UnreadableEntry, unreadable_of
from horarium.errors import HorariumError
from horarium.features.resources import Resources
from horarium.platform.database.statements import fitting
from horarium.platform.ids import id_text
from horarium.platform.wire import Answer, UnreadableRow, encode

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
