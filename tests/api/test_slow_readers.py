"""Streams whose client never reads delay no other stream, no decision and not the end of the service."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
import sqlalchemy as sa
from world import serving

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.features.history import streams
from horarium.features.history.rows import append
from horarium.platform.ids import new_id
from horarium.testing import TestService
from horarium.testing.service import TOKEN

_PATIENCE = 60.0
_ENTRY = 4_000


def open_stream(url: str) -> socket.socket:
    """Ask for the stream from its beginning, and read nothing of the answer."""
    host, port = url.removeprefix("http://").split(":")
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    line.connect((host, int(port)))
    head = f"GET /api/events?after=0-0 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    line.sendall(head.encode())
    return line


def add_entries(horarium: TestService, first: int, last: int) -> None:
    rows = [
        NewEvent(n, EventType.CREATED, None, None, None, {"text": "x" * _ENTRY, "n": n}) for n in range(first, last + 1)
    ]
    uid, now = new_id(), horarium.now

    def write(connection: sa.Connection) -> None:
        append(connection, [(uid, "default", rows)], now=now)

    horarium.resources.database.write(write)


@pytest.mark.parametrize(("readers", "entries"), [(3, 600), pytest.param(19, 5_000, marks=pytest.mark.long)])
def test_streams_that_nobody_reads_delay_no_other_and_end_with_the_service(
    horarium: TestService, readers: int, entries: int
) -> None:
    before = threading.enumerate()
    with ExitStack() as lines:
        with serving(horarium.parts) as url:
            (server,) = [each for each in threading.enumerate() if each not in before and "until_complete" in each.name]
            for _ in range(readers):
                lines.enter_context(open_stream(url))
            add_entries(horarium, 1, entries)
            with http_of(url) as http, http.stream("GET", "/api/events", params={"after": "0-0"}) as heard:
                assert len(_ids(heard, entries)) == entries
                assert http.get("/api/schedules").status_code == 200
        assert not server.is_alive()


def test_a_stream_that_nobody_reads_gives_its_place_back(
    horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "UNREAD_SECONDS", 0.2)
    most, changes = horarium.resources.settings.streams_per_token, list[int]()
    opened = streams.Streams.opened

    @contextmanager
    def counted(self: streams.Streams, token: str, namespace: str) -> Iterator[None]:
        with opened(self, token, namespace):
            changes.append(1)
            try:
                yield
            finally:
                changes.append(-1)

    monkeypatch.setattr(streams.Streams, "opened", counted)
    add_entries(horarium, 1, 2_000)
    with ExitStack() as lines, serving(horarium.parts) as url:
        for _ in range(most):
            lines.enter_context(open_stream(url))
        _until(lambda: changes.count(-1) == most)


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(int(_PATIENCE * 20)):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def http_of(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=_PATIENCE)


def _ids(heard: httpx.Response, count: int) -> list[str]:
    return list(itertools.islice((line for line in heard.iter_lines() if line.startswith("id:")), count))
