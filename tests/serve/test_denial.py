"""What one client does to its connections costs nobody else anything: slow ones are cut off, many leave room."""

from __future__ import annotations

import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import RequestResponseCycle
from world import serving

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.features.history.rows import append
from horarium.platform.ids import new_id
from horarium.testing import service
from horarium.testing.service import TOKEN

# A minute: what must come, comes long before, whatever else the machine does.
_PATIENCE = 60
_LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
_LIST = b"GET /api/schedules HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % TOKEN.encode()
_POST = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % TOKEN.encode()


class Attacker:
    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def says(self, said: bytes) -> Attacker:
        self._line.sendall(said)
        return self

    def says_what_is_heard(self, said: bytes) -> Attacker:
        """As much of it as the other side takes."""
        with suppress(ConnectionError):
            self.says(said)
        return self

    def leaves(self) -> None:
        self._line.close()

    def hears(self) -> tuple[int, Any]:
        """The status and the document of the answer, the connection being over or not; (0, None) = nothing was said."""
        heard = b""
        while b"\r\n\r\n" not in heard:
            if not (more := self._hear()):
                return 0, None
            heard += more
        head, _, body = heard.partition(b"\r\n\r\n")
        [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(body) < length:
            body += self._hear()
        return int(head.split(b" ")[1]), json.loads(body[:length])

    def is_cut_off(self) -> bool:
        while self._hear():
            pass
        return True

    def _hear(self) -> bytes:
        try:
            return self._line.recv(65_536)
        except ConnectionError:
            return b""


class Victim:
    def __init__(self, url: str, stack: ExitStack, api: FastAPI) -> None:
        parts = urlsplit(url)
        self.api = api
        self.address = (parts.hostname or "", parts.port or 0)
        self._stack = stack

    def attacked(self, said: bytes = b"") -> Attacker:
        line = socket.create_connection(self.address, timeout=_PATIENCE)
        return Attacker(self._stack.enter_context(line)).says(said)


@contextmanager
def victim(database: str, **settings: Any) -> Iterator[Victim]:
    with (
        service(database=database, settings=settings) as horarium,
        serving(horarium.parts) as url,
        ExitStack() as lines,
    ):
        yield Victim(url, lines, horarium.parts.api)


def test_headers_and_bodies_that_do_not_come_are_waited_for_so_long_and_no_longer(service_url: str) -> None:
    with victim(service_url, header_timeout_seconds=1.5, body_timeout_seconds=1.5) as attacked:
        silent = attacked.attacked()
        dripping = attacked.attacked(b"GET /livez HTTP/1.1\r\nHost: loc")
        second = attacked.attacked(_LIVEZ)
        assert second.hears()[0] == 200
        second.says(b"GET /li")
        body = attacked.attacked(_POST + b'Content-Length: 100\r\n\r\n{"schedule_id"')
        chunk = attacked.attacked(_POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{")
        refused = attacked.attacked(b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        for slow in (silent, dripping, second, body, chunk):
            status, said = slow.hears()
            assert (status, said["reason"]) == (408, "request_timeout")
            assert slow.is_cut_off()
        assert refused.hears()[0] == 401
        assert refused.is_cut_off()
        assert attacked.attacked(_LIVEZ).hears()[0] == 200


def test_whoever_does_not_read_the_answers_is_cut_off(service_url: str) -> None:
    """More answers than the buffers of a machine hold; a reader of ordinary speed sees none of this."""
    with victim(service_url, body_timeout_seconds=0.3) as attacked:
        deaf = attacked.attacked()
        with pytest.raises(ConnectionError):  # noqa: PT012 - the buffers between us take some before it is felt
            while True:
                deaf.says(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        assert attacked.attacked(_LIVEZ).hears()[0] == 200


def test_when_all_connections_are_taken_probes_are_answered(service_url: str) -> None:
    with victim(service_url, max_connections=4, connections_per_address=4, header_timeout_seconds=600) as attacked:
        holding = [attacked.attacked(_LIST[:20]) for _ in range(4)]
        late = attacked.attacked(_LIST)
        status, said = late.hears()
        assert (status, said["reason"]) == (503, "too_many_connections")
        assert late.is_cut_off()
        # Nor can the reserve be occupied.
        waiting = [attacked.attacked(b"GET /readyz") for _ in range(40)]
        for path in (b"livez", b"healthz", b"readyz"):
            probe = attacked.attacked(b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
            assert probe.hears()[1]["status"] in ("ok", "failing")
            assert probe.is_cut_off()
        assert waiting[0].is_cut_off()
        assert holding[0].says(_LIST[20:]).hears()[0] == 200


def test_one_address_takes_its_share_of_the_connections_and_no_more(service_url: str) -> None:
    with victim(service_url, max_connections=4, header_timeout_seconds=600) as attacked:
        holding = [attacked.attacked(_LIST[:20]) for _ in range(2)]
        assert attacked.attacked(_LIST).hears()[0] == 503
        assert [each.says(_LIST[20:]).hears()[0] for each in holding] == [200, 200]


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        pytest.param(b"GET /livez HTTP/1.1\r\nX: %b" % (b"x" * 400_000), 431, "headers_too_large", id="a long header"),
        pytest.param(b"GET /%b HTTP/1.1\r\n" % (b"x" * 400_000), 431, "headers_too_large", id="an endless path"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "malformed_request", id="TLS"),
        pytest.param(
            _POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n1\r\n" * 20_000,
            400,
            "malformed_request",
            id="crumbs",
        ),
    ],
)
def test_what_is_too_much_or_no_http_is_refused(
    service_url: str, said: bytes, status: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with victim(service_url) as attacked:
        attacker = attacked.attacked()
        try:
            attacker.says(said)
        except ConnectionError:
            return  # it was cut off while it still spoke
        heard, document = attacker.hears()
        assert heard in (0, status)  # a client that is still speaking may lose what was said to it
        assert document is None or document["reason"] == reason
        assert attacked.attacked(_LIVEZ).hears()[0] == 200
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]  # no stranger fills the log


_REPORT = b"POST /api/runs/%b/report HTTP/1.1\r\nHost: localhost\r\n" % (b"0" * 26)
_HALF = b"x" * 400_000


def test_bodies_of_unknown_callers_share_memory_that_is_given_back(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the client leaves, is too slow, is refused or ends its request; others hear how long to wait."""
    monkeypatch.setattr("horarium.serve.api.SHARED_BYTES", 1_000_000)
    with victim(service_url, body_timeout_seconds=3, body_limit_bytes=500_000) as attacked:
        budget = attacked.api.state.body_budget
        declared = _REPORT + b"Content-Length: 450000\r\n\r\n" + _HALF
        chunked = _REPORT + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(_HALF) + _HALF + b"\r\n"
        slow, leaving = attacked.attacked(declared), attacked.attacked(chunked)
        _until(lambda: budget.used == 2 * len(_HALF))
        for said in (declared, chunked):
            third = attacked.attacked()
            third.says_what_is_heard(said)
            status, document = third.hears()
            assert status in (0, 503)  # a client that is still speaking may lose what was said to it
            assert document is None or document["reason"] == "too_many_bodies"
        assert attacked.attacked(_LIST).hears()[0] == 200
        leaving.leaves()
        _until(lambda: budget.used == len(_HALF))
        ending = attacked.attacked(declared).says(b"x" * 50_000)
        assert ending.hears()[0] == 401
        assert slow.hears()[0] == 408
        _until(lambda: budget.used == 0)


def test_a_long_body_without_a_token_is_not_read(service_url: str) -> None:
    with victim(service_url) as attacked:
        head = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n"
        for shown in (b"", b"Authorization: Bearer hor_wrong\r\n"):
            assert attacked.attacked(head + shown + b"\r\n").hears()[0] == 401
        session = (
            b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nX-Horarium-Source: ui\r\nSec-Fetch-Site: same-origin\r\n"
        )
        assert attacked.attacked(session + b"Content-Length: 2000000\r\n\r\n").hears()[0] == 413
        assert attacked.api.state.body_budget.used == 0


def test_a_body_that_was_not_read_is_gone_with_its_connection(service_url: str) -> None:
    """Not only when Python looks for garbage in cycles, which a service does rarely."""
    gc.collect()
    gc.disable()
    try:
        with victim(service_url) as attacked:
            head = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n"
            caller = attacked.attacked(head + b"x" * 50_000)
            assert caller.hears()[0] == 401
            _until(_unread_bodies)
            caller.leaves()
            _until(lambda: not _unread_bodies())
    finally:
        gc.enable()


def _unread_bodies() -> list[RequestResponseCycle]:
    return [each for each in gc.get_objects() if isinstance(each, RequestResponseCycle) and each.body]


def _until(holds: Callable[[], object]) -> None:
    for _ in range(_PATIENCE * 100):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to that")


_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"Content-Length: 5\r\n" + _CHUNKED, id="length and coding"),
        pytest.param(_CHUNKED + b"Content-Length: 5\r\n", id="coding and length"),
        pytest.param(b"content-length: 0\r\ntransfer-encoding: CHUNKED\r\n", id="no length and coding"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n", id="two lengths"),
        pytest.param(b"Content-Length: 5, 6\r\n", id="two lengths in one header"),
    ],
)
@pytest.mark.parametrize("path", [b"/api/schedules", b"/nowhere"])
def test_a_request_with_two_ends_is_refused_and_ends_the_connection(service_url: str, head: bytes, path: bytes) -> None:
    """Also behind a request that was answered, and whatever host it names."""
    with victim(service_url) as attacked:
        for host, before in ((b"localhost", b""), (b"elsewhere.example", _LIVEZ)):
            attacker = attacked.attacked(before)
            if before:
                assert attacker.hears()[0] == 200
            attacker.says(b"POST %b HTTP/1.1\r\nHost: %b\r\n%b\r\n0\r\n\r\n%b" % (path, host, head, _SMUGGLED))
            status, document = attacker.hears()
            assert (status, document["reason"]) == (400, "malformed_request")
            assert attacker.hears() == (0, None)


def test_many_requests_in_one_breath_are_answered_one_after_the_other(service_url: str) -> None:
    with victim(service_url) as attacked:
        pipelined = attacked.attacked(_LIVEZ * 50)
        heard = b""
        while heard.count(b"HTTP/1.1 200") < 50:
            heard += pipelined._line.recv(65_536)
        assert attacked.attacked(_LIVEZ).hears()[0] == 200


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_whoever_is_in_the_midst_of_a_request_stops_no_stop(
    service_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.serve.process._CLOSE_CONNECTIONS_SECONDS", 3)
    with ExitStack() as lines:
        with victim(service_url) as attacked:
            line = socket.create_connection(attacked.address, timeout=_PATIENCE)
            holding = Attacker(lines.enter_context(line)).says(_POST + b"Content-Length: 9\r\n\r\n{")
            assert attacked.attacked(_LIST).hears()[0] == 200
        assert holding.is_cut_off()
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_a_stream_whose_reader_never_reads_is_cut_off_and_gives_its_place_to_another(service_url: str) -> None:
    """Its buffers are full long before it was told all; another with the same token would be one too many."""
    settings = {"streams_per_token": 1, "body_timeout_seconds": 0.5}
    with service(database=service_url, settings=settings) as horarium:
        payload = {"said": "x" * 4_000}
        rows = [NewEvent(n, EventType.CREATED, None, None, None, payload) for n in range(1, 3_001)]
        write = partial(append, streams=[(new_id(), "default", rows)], now=horarium.now)
        horarium.resources.database.write(write)
        with serving(horarium.parts) as url, ExitStack() as lines:
            attacked = Victim(url, lines, horarium.parts.api)
            path = b"GET /api/events?after=0-0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"
            ask = path % TOKEN.encode()
            deaf = attacked.attacked(ask)
            assert deaf._hear().startswith(b"HTTP/1.1 200")
            deadline = time.monotonic() + _PATIENCE
            while not (said := attacked.attacked(ask)._hear()).startswith(b"HTTP/1.1 200"):
                assert said.startswith(b"HTTP/1.1 429")
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert attacked.attacked(_LIVEZ).hears()[0] == 200
            assert deaf.is_cut_off()
