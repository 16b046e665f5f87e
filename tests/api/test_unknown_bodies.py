"""A caller who is not known yet sends little, and all of them together fill a bounded part of the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from horarium.platform.http.limits import SHARED_BYTES, UNKNOWN_CALLER_BYTES
from horarium.platform.http.routing import OPERATIONS
from horarium.testing import TestService, service
from horarium.testing.service import TOKEN

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

_PIECE = b" " * 16_384
_PIECES = 20
_SESSION = ("POST", "/api/session")
# Their credential may stand in the body.
_REPORTS = {("POST", "/api/runs/{run_id}/report"), ("POST", "/api/runs/reports")}
_READ = sorted(route for route, operation in OPERATIONS.items() if operation.body is not None)
_OUR_PAGE = {b"x-horarium-source": b"ui", b"sec-fetch-site": b"same-origin", b"host": b"localhost"}


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    with service(database=database_url) as running:
        yield running


class Sender:
    """A client of the application itself, which sends a body in pieces and counts what is read of it."""

    def __init__(self, horarium: TestService, route: tuple[str, str], headers: dict[bytes, bytes]) -> None:
        self._api = horarium.parts.api
        method, path = route
        for name in ("run_id", "workspace_id"):
            path = path.replace(f"{{{name}}}", "01kjf0z7c8e2v9q4m6t1n3b5x1")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [*headers.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("localhost", 80),
            "app": self._api,
        }
        self.read = 0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.most_used = 0

    def sends(self, *, then_leaves: bool = False) -> Sender:
        asyncio.run(self._sends(then_leaves))
        return self

    async def _sends(self, then_leaves: bool) -> None:
        sent = 0

        async def receive() -> dict[str, Any]:
            nonlocal sent
            self.most_used = max(self.most_used, self._api.state.body_budget.used)
            sent += 1
            if sent > _PIECES:
                return {"type": "http.disconnect"}
            self.read += len(_PIECE)
            return {"type": "http.request", "body": _PIECE, "more_body": then_leaves or sent < _PIECES}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status, self.headers = message["status"], dict(message["headers"])

        await self._api(self._scope, receive, send)


@pytest.mark.parametrize("shown", [None, b"Bearer hor_wrong", b"Bearer hrt_0.wrong"])
def test_no_route_reads_more_than_a_little_for_a_caller_without_a_token(
    horarium: TestService, shown: bytes | None
) -> None:
    headers = {} if shown is None else {b"authorization": shown}
    for route in _READ:
        if shown is None and route in _REPORTS:
            continue
        sender = Sender(horarium, route, {**_OUR_PAGE, **headers}).sends()
        most = 16_384 if route == _SESSION else UNKNOWN_CALLER_BYTES
        assert sender.status in (401, 413, 429), route
        assert sender.read <= most + len(_PIECE), route
    assert horarium.parts.api.state.body_budget.used == 0


def test_every_route_knows_its_caller_before_it_reads(horarium: TestService) -> None:
    """A long body of a known caller is read to its end, and takes nothing of what unknown callers share."""
    known = {b"authorization": b"Bearer " + TOKEN.encode()}
    for route in _READ:
        if route == _SESSION:
            continue
        sender = Sender(horarium, route, {**known, b"content-type": b"application/json"}).sends()
        assert sender.status != 413, route
        assert sender.most_used == 0, route


def test_a_session_reads_sixteen_kilobytes_and_no_more(horarium: TestService) -> None:
    declared = {**_OUR_PAGE, b"content-length": b"16385"}
    assert Sender(horarium, _SESSION, declared).sends().read == 0
    sender = Sender(horarium, _SESSION, _OUR_PAGE).sends()
    assert (sender.status, sender.read) == (413, 2 * len(_PIECE))


@pytest.mark.parametrize("route", sorted(_REPORTS))
def test_a_report_without_a_bearer_is_counted_until_it_is_over(horarium: TestService, route: tuple[str, str]) -> None:
    budget = horarium.parts.api.state.body_budget
    sender = Sender(horarium, route, {}).sends()
    assert (sender.status, sender.read) == (401, _PIECES * len(_PIECE))
    assert (sender.most_used, budget.used) == ((_PIECES - 1) * len(_PIECE), 0)
    assert Sender(horarium, route, {}).sends(then_leaves=True).most_used == _PIECES * len(_PIECE)
    assert budget.used == 0
    budget.take(SHARED_BYTES - 5 * len(_PIECE))
    refused = Sender(horarium, route, {}).sends()
    assert (refused.status, refused.headers[b"retry-after"], refused.read) == (503, b"1", 6 * len(_PIECE))
    assert budget.used == SHARED_BYTES - 5 * len(_PIECE)
    by_bearer = Sender(horarium, route, {b"authorization": b"Bearer " + TOKEN.encode()}).sends()
    assert by_bearer.status not in (413, 503)
