"""Limits of request bodies: of one request, and of all requests whose caller is not known yet.

A body of a known caller may be as long as the settings allow. Until the caller is known, a body has 64 kB, unless the
route takes its credential from the body. All bytes that were read for unknown callers share one budget, so that no
number of connections can fill the memory of the process. When it is used up, the body that holds most of it gives way
to a shorter one: a few long bodies that never end keep no report out.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.types import Message, Receive

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
