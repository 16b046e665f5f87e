"""Limits of one connection that uvicorn has no settings for; docs/decisions/0037 lists them."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Any, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from horarium.features.cluster.probes import is_probe
from horarium.platform.http.connections import Network, network_of
from horarium.platform.http.middleware import ambiguous_length
from horarium.platform.http.responses import problem
from horarium.platform.settings import Settings
from horarium.serve.sockets import ConnectionSeat, SeatLimits, Seats, fitting

# A whole request line and all headers of a request.
HEAD_BYTES = 16_384
# Beyond the first pieces of a body, each must have so many bytes on average: reading a piece costs more than a byte.
_FREE_PIECES = 1_000
_BYTES_A_PIECE = 64
# Whoever reads less than this is not reading.
_LEAST_READ_BYTES_A_SECOND = 1_024


class Phase(Enum):
    """Phase of a connection: what the client sends next."""

    HEAD = "headers"
    BODY = "body"


def phase_of(their_state: Any, *, idle: bool) -> Phase | None:
    """Return what the client owes; None = nothing. `idle`: an answer was given, and nothing has come since."""
    if their_state is h11.IDLE:
        return None if idle else Phase.HEAD
    return Phase.BODY if their_state is h11.SEND_BODY else None


def reads(before: int, now: int, seconds: float) -> bool:
    """Tell whether a client that left `before` bytes unread, and now leaves `now`, reads at all."""
    return before - now >= min(before, _LEAST_READ_BYTES_A_SECOND * seconds)


def is_crumbs(pieces: int, size: int) -> bool:
    return pieces > _FREE_PIECES + size // _BYTES_A_PIECE


class _Ambiguous(h11.RemoteProtocolError):
    """A request whose end two servers may place differently."""


class _Reader(h11.Connection):
    """Refuses a body that comes in crumbs, and a request that gives two lengths."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES)
        self._pieces = self._size = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._pieces, self._size = self._pieces + 1, self._size + len(event.data)
            if is_crumbs(self._pieces, self._size):
                raise h11.RemoteProtocolError("The request body arrives in too many small chunks")
        elif isinstance(event, h11.Request):
            self._pieces = self._size = 0
            if (ambiguous := ambiguous_length(event.headers, event.http_version.decode("ascii"))) is not None:
                raise _Ambiguous(ambiguous)
        return event


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol with what uvicorn 0.54 cannot do through its settings.

    - Deadlines of headers and body: uvicorn limits only the time between two requests (`timeout_keep_alive`). Each
      deadline is a number that the server compares with its clock ten times a second, since a timer for each request
      would cost more.
    - Clients that do not read: uvicorn waits for them without limit, also when it closes the connection.
    - Connections of one address, and a reserve for probes: `limit_concurrency` has one limit for everybody, which also
      refuses probes.
    - Bodies in tiny chunks, and requests with both a length and a transfer coding: h11 accepts them. The reader that
      refuses them replaces uvicorn's, so it also limits the headers instead of `h11_max_incomplete_event_size`.
    - Refusals as problem documents with 400, 408 or 431: uvicorn sends 400 as plain text, and raises an exception if a
      response has begun.
    - Memory of an unread body: without this, it stays until Python searches for reference cycles.
    - Clients that are cut off when the service stops: uvicorn waits for the rest of a body as long as for a handler
      (`timeout_graceful_shutdown`).
    """

    def __init__(
        self,
        *,
        seats: Seats,
        patience: Mapping[Phase, float],
        proxies: tuple[Network, ...],
        base: str = "",
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._base = base
        self.conn = _Reader()
        self._seats = seats
        self._patience = patience
        self._proxies = proxies
        self._seat: ConnectionSeat | None = None
        self._address: str | None = None
        self._waits_for: tuple[Any, Phase | None] | None = None
        self._until: float | None = None
        self._unread: tuple[int, float] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._address = self._sharing()
        self._seat = self._seats.take(self, self._address)
        if self._seat is ConnectionSeat.PROBES:
            self.app = _only_probes(self.app, self._base)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.cycle is not None:
            # Nothing is read of it after this, and the two refer to each other: the search for garbage comes late.
            self.cycle.body = bytearray()
        if self._seat is not None:
            self._seats.give_back(self, self._seat, self._address)
            self._seat = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = None

    def leave(self) -> None:
        self.transport.abort()

    def waits_for_us(self) -> bool:
        """Its request has come, and it reads what it is told."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or self.flow.write_paused:
            return False
        return phase_of(self.conn.their_state, idle=False) is None

    def keep_time(self, now: float) -> None:
        """Asked several times a second."""
        if self.transport.is_closing() and self._unread is None:
            self._expect_reading()  # what is still to be written must not keep a connection that is closed
        if self._unread is not None:
            self._keep_reading(now)
        if self._until is not None and now >= self._until and not self.transport.is_closing():
            self._too_slow()

    def send_400_response(self, msg: str) -> None:
        """Reject a request that is no valid HTTP, or is too large, which h11 tells apart."""
        error = sys.exc_info()[1]
        if isinstance(error, _Ambiguous):
            self._refuse(400, "malformed_request", str(error))
        elif getattr(error, "error_status_hint", 400) == 431:
            self._refuse(431, "headers_too_large", f"Request line and headers exceed {HEAD_BYTES} bytes")
        else:
            self._refuse(400, "malformed_request", "This is not a valid HTTP/1.1 request")

    def _look(self) -> None:
        """The deadline begins when a phase does, and moves for nothing that happens in it."""
        phase = phase_of(self.conn.their_state, idle=self.timeout_keep_alive_task is not None)
        if self._waits_for is not None and self._waits_for == (self.cycle, phase):
            return
        self._waits_for = (self.cycle, phase)
        self._until = None if phase is None else self.loop.time() + self._patience[phase]

    def _too_slow(self) -> None:
        if self.flow.read_paused:  # it is us who do not read
            self._until = self.loop.time() + self._patience[Phase.BODY]
            return
        self._until = None
        part = Phase.BODY if self.conn.their_state is h11.SEND_BODY else Phase.HEAD
        self._refuse(408, "request_timeout", f"The {part.value} of the request did not arrive in time")

    def _refuse(self, status: int, reason: str, message: str) -> None:
        """Past h11: the connection ends with it. Whoever has begun to hear another answer hears nothing more."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_as_bytes(status, reason, message))
        self.transport.close()

    def _expect_reading(self) -> None:
        self._unread = (self.transport.get_write_buffer_size(), self.loop.time() + self._patience[Phase.BODY])

    def _keep_reading(self, now: float) -> None:
        assert self._unread is not None
        before, until = self._unread
        if now < until:
            return
        if not reads(before, self.transport.get_write_buffer_size(), self._patience[Phase.BODY]):
            self.transport.abort()
            return
        self._expect_reading()

    def _sharing(self) -> str | None:
        """Behind our own proxy there are many clients, whom it counts itself."""
        if self.client is None:
            return None
        host = self.client[0]
        try:
            known = any(ip_address(host) in proxy for proxy in self._proxies)
        except ValueError:
            known = False
        return None if known else network_of(host)


def _only_probes(app: Any, base: str) -> Any:
    """In the reserve: one probe, and that is all."""

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        chosen: ASGIApp = app
        if not is_probe(scope["path"], base):
            chosen = problem(
                503,
                "too_many_connections",
                "All connections are in use. Try again later.",
                headers={"Retry-After": "1"},
            )
        await chosen(scope, receive, closing)

    return asked


def _as_bytes(status: int, reason: str, message: str) -> bytes:
    said = problem(status, reason, message, headers={"Connection": "close"})
    head = b"".join(b"%b: %b\r\n" % header for header in said.raw_headers)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), head, bytes(said.body))


def bounded_protocol(settings: Settings) -> type[asyncio.Protocol]:
    """Make the protocol of each connection; all of them share their seats."""
    most = fitting(settings.max_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    made = partial(
        BoundedProtocol,
        seats=Seats(SeatLimits(most, min(most, settings.address_connections))),
        patience={Phase.HEAD: settings.header_timeout_seconds, Phase.BODY: settings.body_timeout_seconds},
        proxies=tuple(map(ip_network, settings.trusted_proxies)) if settings.behind_proxy else (),
        base=settings.base_path,
    )
    return cast("type[asyncio.Protocol]", made)


def keep_time(connections: Iterable[object]) -> None:
    now = asyncio.get_running_loop().time()
    for each in tuple(connections):
        if isinstance(each, BoundedProtocol):
            each.keep_time(now)
