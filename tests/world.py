"""The one world of the tests: a clock that moves when told, a whole service behind it, and a real server in front.

A folder says what is special about its world by giving one of the small fixtures anew: `start`, `answer`, or
`service_url`. What stands on the engine alone is `engine.builders.World`.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from horarium.core.lifecycle.outcome import Outcome
from horarium.instant import SECOND
from horarium.serve.process import Door, listen, url_of
from horarium.serve.service import Service
from horarium.serve.sockets import Tls
from horarium.testing import Accepted, TestService, service
from horarium.testing import doubles as testing

START = "2026-03-01T00:00:00Z"


class FakeClock(testing.FakeClock):
    def __init__(self, start: testing.When = "2026-03-02T00:00:00Z") -> None:
        super().__init__(start)

    def move(self, seconds: float) -> None:
        """Back as well, as the clock of a machine may be set."""
        self.set(self.now() + round(seconds * SECOND))


@pytest.fixture
def start() -> str:
    return START


@pytest.fixture
def answer() -> Outcome:
    """What every target says: runs stay open until a test ends them. Parametrise it to hear something else."""
    return Accepted()


@pytest.fixture
def service_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A copy of a migrated database, which is three times as fast as migrating one."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'horarium.db')}"


@pytest.fixture
def horarium(start: str, answer: Outcome, service_url: str) -> Iterator[TestService]:
    with service(at=start, answer=answer, database=service_url) as running:
        yield running


@pytest.fixture
def http(horarium: TestService) -> httpx.Client:
    return horarium.http()


@contextmanager
def serving(service: Service, tls: Tls | None = None) -> Iterator[str]:
    """The address of a real server on loopback, while it runs in a thread."""
    listening = listen("127.0.0.1", 0)
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    door = Door(service, listening, tls)
    thread = threading.Thread(target=loop.run_until_complete, args=(door.run(stop),), daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(door.ready.wait(), loop).result(60)
    try:
        yield url_of(listening, tls=tls is not None)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
        listening.close()
