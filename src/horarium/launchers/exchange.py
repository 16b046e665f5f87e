"""One HTTP exchange: to the checked address, under the requested name, on its own connection.

The name is resolved once; the connection goes to that address with the name in `Host` and in the TLS handshake. A
second look-up, which could answer differently (DNS rebinding), never happens.

Launches reuse no connection. An idle connection that the target has just closed looks like a lost request, and each
such loss would be an `Unknown`; also, a reused TLS connection to an address shared by two names was verified for
only one of them. Messages to subscribers may come twice, so consecutive messages of one subscription share a
connection (`webhook.py`).

h11 writes and reads the messages; this file moves bytes. A general client takes four times as long for such a call,
because of pools, cookies, redirects and proxies, all of which must be disabled here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import h11

from horarium.launchers.ssrf import AddressForbidden, AddressGuard, Permitted, Unresolved

CONNECT_TIMEOUT_SECONDS = 10.0
# Of status line and header fields together, before the answer counts as no answer.
MAX_HEAD_BYTES = 102_400
# Interim answers (1xx) before the answer, and pieces of a body: a target may make each as small as it likes, and
# each costs us some microseconds.
MAX_INTERIM = 100
MAX_PIECES = 10_000
# What waits unread in a connection before the far end is asked to pause, and what is looked at in one go.
_MAX_UNREAD_BYTES = 262_144
_SLICE_BYTES = 16_384

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class TargetForbidden(Exception):
    """The guard said no; nothing was sent."""


class InvalidRequest(Exception):
    """The request cannot be written; nothing was sent."""


class ConnectionLost(Exception):
    """No connection, or one that broke, or an answer that is none."""


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """Where to: `host` as it is looked up and verified, `authority` as it stands in `Host`."""

    secure: bool
    host: str
    port: int
    authority: bytes


class Exchange:
    """One request and its answer. It is written before anybody is dialled: what cannot be written reaches nobody."""

    def __init__(self, method: str, target: bytes, headers: Headers, body: bytes) -> None:
        self.sent = False
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        try:
            head = self._http.send(h11.Request(method=method, target=target, headers=list(headers)))
            content = self._http.send(h11.Data(body)) if body else b""
            end = self._http.send(h11.EndOfMessage())
        except h11.LocalProtocolError as wrong:
            raise InvalidRequest(str(wrong)) from None
        self._raw = b"".join(part for part in (head, content, end) if part)

    async def send(self, wire: Wire) -> HttpResponse:
        """The head of the answer; the first byte counts as sent before it leaves."""
        self.sent = True
        wire.write(self._raw)
        for _ in range(MAX_INTERIM):
            event = await _next_event(self._http, wire)
            if isinstance(event, h11.Response):
                return HttpResponse(event, self._http, wire)
        raise ConnectionLost("the target sent no complete response")


class HttpResponse:
    def __init__(self, response: h11.Response, http: h11.Connection, wire: Wire) -> None:
        self.status = response.status_code
        self._headers = response.headers
        self._http = http
        self._wire = wire

    @property
    def may_go_on(self) -> bool:
        """Tell whether the connection may carry another request: the answer was read to its end, and allows it."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def header(self, name: bytes) -> str | None:
        """The first of this name, which is in lower case; bytes that are no UTF-8 are replaced."""
        for each, value in self._headers:
            if each == name:
                return value.decode("utf-8", "replace")
        return None

    async def read(self, limit: int) -> tuple[bytes, bool]:
        """At most `limit` bytes of the body, and whether there was more. Raises Lost where it breaks off."""
        raw = bytearray()
        for _ in range(MAX_PIECES):
            event = await _next_event(self._http, self._wire)
            if not isinstance(event, h11.Data):
                return bytes(raw), False
            raw += event.data
            if len(raw) > limit:
                break
        return bytes(raw[:limit]), True


async def _next_event(http: h11.Connection, wire: Wire) -> object:
    try:
        while (event := http.next_event()) is h11.NEED_DATA:
            data = await wire.read()
            if not data and http.their_state is h11.SEND_RESPONSE:
                raise ConnectionLost("the target closed the connection before it answered")
            http.receive_data(data)
    except h11.RemoteProtocolError as wrong:
        raise ConnectionLost(f"the response cannot be read: {wrong}") from None
    except OSError as wrong:
        raise ConnectionLost(str(wrong) or type(wrong).__name__) from None
    return event


class Wire(asyncio.Protocol):
    """The bytes of one connection. What arrived before it broke can be read before the break is told."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > _MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake()

    def write(self, data: bytes) -> None:
        """All of it is in memory already, so the transport may keep what the far end does not take at once."""
        assert self._transport is not None
        self._transport.write(data)

    async def read(self) -> bytes:
        """Some of what has arrived, or empty at the end. Raises OSError when the connection broke."""
        if self._unread:
            # Another slice of the same: others may have their turn between two of them.
            await asyncio.sleep(0)
        elif not self._ended:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if self._unread:
            data = bytes(self._unread[:_SLICE_BYTES])
            del self._unread[:_SLICE_BYTES]
            if self._paused and not self._unread and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            return data
        if self._error is not None:
            raise self._error if isinstance(self._error, OSError) else ConnectionError(str(self._error))
        return b""

    @property
    def is_idle(self) -> bool:
        """Tell whether the connection stands, and nothing has arrived that no request asked for."""
        return not self._ended and not self._unread and self._error is None

    def close(self) -> None:
        """At once: an answer that is not wanted to its end would keep a polite goodbye waiting."""
        if self._transport is not None:
            self._transport.abort()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Dialler:
    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._guard = guard
        self._tls = tls

    async def dial(self, place: HttpOrigin, group: str) -> Wire:
        """A connection to one of the checked addresses. Raises TargetForbidden or Lost; nothing was sent then."""
        verdict = await self._guard.judge(place.host, place.port, group)
        match verdict:
            case Permitted(addresses):
                return await self._first_of(place, addresses)
            case AddressForbidden(error):
                raise TargetForbidden(error)
            case Unresolved(error):
                raise ConnectionLost(error)

    async def _first_of(self, place: HttpOrigin, addresses: tuple[str, ...]) -> Wire:
        """The next address is tried only while nothing has been sent: a failed connect cannot have delivered."""
        for address in addresses[:-1]:
            try:
                return await self._connect(place, address)
            except ConnectionLost:
                continue
        return await self._connect(place, addresses[-1])

    async def _connect(self, place: HttpOrigin, address: str) -> Wire:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                _, wire = await asyncio.get_running_loop().create_connection(
                    Wire,
                    address,
                    place.port,
                    ssl=self._tls if place.secure else None,
                    server_hostname=place.host.rstrip(".") if place.secure else None,
                )
        except TimeoutError:
            raise ConnectionLost(f"no connection to {address} within {CONNECT_TIMEOUT_SECONDS:g} s") from None
        except OSError as wrong:
            raise ConnectionLost(str(wrong) or type(wrong).__name__) from None
        return wire
