"""Names to look up in tests: a `getaddrinfo` whose answers are held back, and a clock that is moved by hand."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchers.far_ends import FixedClock

from horarium.launchers.resolver import SystemResolver

PATIENCE = 30.0
"""Seconds after which a test gives up; nothing here takes a thousandth of it."""


@dataclass
class Names:
    """A `getaddrinfo` that notes what it is asked and answers held names only when they are let go."""

    held: set[str] = field(default_factory=set)
    wrong: dict[str, BaseException] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, host: str, port: int, *, type: int) -> Sequence[tuple[Any, ...]]:
        with self._changed:
            self.asked.append(host)
            assert self._changed.wait_for(lambda: host not in self.held, PATIENCE)
        if host in self.wrong:
            raise self.wrong[host]
        return [(socket.AF_INET, type, 6, "", (each, port)) for each in ("192.0.2.1", "192.0.2.2")]

    def let_go(self, *hosts: str) -> None:
        with self._changed:
            self.held -= set(hosts)
            self._changed.notify_all()


@dataclass
class Ticking(FixedClock):
    seconds: float = 0.0

    def monotonic(self) -> float:
        return self.seconds


FOUND = ("192.0.2.1", "192.0.2.2")


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.001)


def patient(getaddrinfo: Any, **options: Any) -> SystemResolver:
    """A resolver whose time limit no slow machine reaches."""
    return SystemResolver(getaddrinfo=getaddrinfo, limit_seconds=PATIENCE, **options)
