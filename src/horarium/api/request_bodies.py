"""Limits of request bodies: of one request, and of all requests whose caller is not known yet.

A body of a known caller may be as long as the settings allow. Until the caller is known, a body has 64 kB, unless the
route takes its credential from the body. All bytes that were read for unknown callers share one budget, so that no
number of connections can fill the memory of the process.
"""

from __future__ import annotations

import threading
from typing import Final

from starlette.requests import Request
from starlette.types import Message, Receive

UNKNOWN_CALLER_BYTES: Final = 65_536
SHARED_BYTES: Final = 32 * 1_048_576


class BodyTooLarge(Exception):
    def __init__(self, limit: int, *, known: bool) -> None:
        rule = "a request may have" if known else "a request without a valid token may have"
        super().__init__(f"{rule} {limit} bytes at most")


class BodiesFull(Exception):
    def __init__(self) -> None:
        super().__init__(
            "requests whose token stands in the body fill the memory they may use; "
            "try again, or send Authorization: Bearer …"
        )


class BodyBudget:
    """The bytes that bodies of unknown callers may hold together, in one process."""

    def __init__(self, most: int = SHARED_BYTES) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._used = 0

    @property
    def used(self) -> int:
        return self._used

    def take(self, size: int) -> None:
        """Raise BodiesFull and take nothing if too little is left."""
        with self._lock:
            if self._used + size > self._most:
                raise BodiesFull
            self._used += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self._used -= size


class RequestBody:
    """The body of one request. `receive` counts it as it comes; `length` is the one that the request declares."""

    def __init__(self, receive: Receive, budget: BodyBudget, *, most: int, length: int | None) -> None:
        self._receive = receive
        self._budget = budget
        self._most = most
        self._limit = min(UNKNOWN_CALLER_BYTES, most)
        self._length = length or 0
        self._seen = 0
        self._lock = threading.Lock()  # handlers learn the caller in a thread
        self._held: int | None = 0  # None = the caller is known, or the request is over

    def expect_credential(self) -> None:
        """Allow as much as a known caller may send: the credential stands in the body."""
        self._limit = self._most

    def limit_to(self, size: int) -> None:
        self._limit = min(size, self._most)

    def release(self) -> None:
        """Give back the share of the budget, once the caller is known or the request is over."""
        with self._lock:
            held, self._held = self._held, None
        self._budget.give_back(held or 0)

    async def receive(self) -> Message:
        self._check(self._length)
        message = await self._receive()
        size = len(message.get("body", b""))
        self._seen += size
        self._check(self._seen)
        with self._lock:
            if self._held is not None:
                self._budget.take(size)
                self._held += size
        return message

    def _check(self, size: int) -> None:
        known = self._held is None
        limit = self._most if known else self._limit
        if size > limit:
            raise BodyTooLarge(limit, known=known or limit == self._most)


def body_of(request: Request) -> RequestBody:
    body: RequestBody = request.scope["state"]["body"]
    return body
