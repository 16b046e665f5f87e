"""Limits of connections, pending TLS handshakes, and the TLS context of the service.

The number of connections is limited in total and per address. A few more connections may only request probes, so
that monitoring works when all others are in use. The request of a connection is not known before it is read, so
connections beyond the limits are accepted, answer probes and refuse everything else. This reserve cannot be
occupied: when it is full, the connection that has waited longest is closed, and an address replaces its own first.

TLS is at least 1.2. With `tls_client_ca`, a client must have a certificate of that authority, unless
`tls_client_optional` admits others with a token alone. A replaced certificate file is read again; a bad file changes
nothing.

Handshakes use open files that the layers above TLS do not see, so their number and duration are limited too.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from cryptography import x509
from structlog.typing import FilteringBoundLogger

from horarium.errors import InvalidDefinition
from horarium.instant import Instant, from_datetime
from horarium.platform.http.connections import STATE, network_of, read_certificate
from horarium.platform.settings import Settings, is_loopback

# ── limits ────────────────────────────────────────────────────────────────────────────────────────────


RESERVE = 32
RESERVE_OF_ADDRESS = 8


class ConnectionSeat(Enum):
    """Requests that a connection may send."""

    ANYTHING = "anything"
    PROBES = "probes only"


@dataclass(frozen=True, slots=True)
class SeatLimits:
    """Connections of a process and of one address; `reserve` are those beyond them."""

    most: int
    of_address: int
    reserve: int = RESERVE
    reserve_of_address: int = RESERVE_OF_ADDRESS


def seat_for(limits: SeatLimits, taken: int, taken_by_address: int) -> ConnectionSeat:
    fits = taken < limits.most and taken_by_address < limits.of_address
    return ConnectionSeat.ANYTHING if fits else ConnectionSeat.PROBES


def fitting(wanted: int, open_files: int) -> int:
    """Connections are files: half of them are left to the database, to launches and to whatever else there is.

    A number below zero says that there is no limit.
    """
    return wanted if open_files < 0 else max(1, min(wanted, open_files // 2))


class Leaves(Protocol):
    def leave(self) -> None:
        """Close the connection at once, without a word."""


class Seats:
    """Seats of one process, used from its loop alone.

    `address` None = a client that shares no address, such as the operator's proxy.
    """

    def __init__(self, limits: SeatLimits) -> None:
        self._limits = limits
        self._taken = 0
        self._by_address: Counter[str] = Counter()
        self._reserve: OrderedDict[Leaves, str | None] = OrderedDict()

    def take(self, who: Leaves, address: str | None) -> ConnectionSeat:
        of_address = 0 if address is None else self._by_address[address]
        seat = seat_for(self._limits, self._taken, of_address)
        if seat is ConnectionSeat.ANYTHING:
            self._taken += 1
            if address is not None:
                self._by_address[address] += 1
        else:
            self._make_room(address)
            self._reserve[who] = address
        return seat

    def give_back(self, who: Leaves, seat: ConnectionSeat, address: str | None) -> None:
        if seat is ConnectionSeat.PROBES:
            self._reserve.pop(who, None)
            return
        self._taken -= 1
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _make_room(self, address: str | None) -> None:
        own = [who for who, of in self._reserve.items() if of == address]
        if len(own) >= self._limits.reserve_of_address:
            self._push_out(own[0])
        elif len(self._reserve) >= self._limits.reserve:
            self._push_out(next(iter(self._reserve)))

    def _push_out(self, who: Leaves) -> None:
        del self._reserve[who]
        who.leave()


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────


_LOOK_SECONDS = 5.0
_NEEDS = {"tls_key": "tls_cert", "tls_key_password": "tls_cert", "tls_client_ca": "tls_cert",
          "tls_client_optional": "tls_client_ca", "tls_principals": "tls_client_ca"}  # fmt: skip


class Tls:
    """TLS of the listening server. `open_tls` makes it."""

    def __init__(self, settings: Settings, cert: Path) -> None:
        self._cert = cert
        self._key = settings.tls_key
        # Never None: the library would ask for it at the terminal.
        self._password = "" if settings.tls_key_password is None else settings.tls_key_password.get_secret_value()
        self._stamp = self._looks()
        self.context = self._loaded()
        if settings.tls_client_ca is not None:
            self._ask_for_certificates(settings.tls_client_ca, optional=settings.tls_client_optional)

    def renew(self) -> bool:
        """Reload changed files, if they are valid, and tell whether they changed; new connections use them."""
        stamp = self._looks()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._loaded()
        self.context.load_cert_chain(self._cert, self._key, self._password)
        return True

    async def keep_current(self, log: FilteringBoundLogger) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                if self.renew():
                    log.info("tls_certificate_reloaded", file=str(self._cert))
            except InvalidDefinition as wrong:
                log.error("tls_certificate_reload_failed", error=wrong.message)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        _check_readable("tls_cert", self._cert)
        if self._key is not None:
            _check_readable("tls_key", self._key)
        try:
            context.load_cert_chain(self._cert, self._key, self._password)
        except (ssl.SSLError, ValueError) as wrong:
            why = getattr(wrong, "reason", None) or str(wrong)
            raise InvalidDefinition({"tls_cert": [f"does not match its private key: {why[:200]}"]}) from None
        return context

    def _ask_for_certificates(self, authority: Path, *, optional: bool) -> None:
        """No sessions are taken up again: the certificate would not be looked at another time."""
        _check_readable("tls_client_ca", authority)
        try:
            self.context.load_verify_locations(cafile=authority)
        except ssl.SSLError as wrong:
            raise InvalidDefinition({"tls_client_ca": [f"contains no certificate: {wrong.reason}"]}) from None
        self.context.verify_mode = ssl.CERT_OPTIONAL if optional else ssl.CERT_REQUIRED
        self.context.options |= ssl.OP_NO_TICKET
        self.context.num_tickets = 0

    def _looks(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp(path) for path in (self._cert, self._key) if path is not None)


def open_tls(settings: Settings) -> Tls | None:
    """None where no certificate is set. Raises InvalidDefinition."""
    for name, needed in _NEEDS.items():
        if getattr(settings, name) and getattr(settings, needed) is None:
            raise InvalidDefinition({name: [f"requires {needed}"]})
    return None if settings.tls_cert is None else Tls(settings, settings.tls_cert)


def in_the_clear(settings: Settings) -> str | None:
    """Warn of an address that others can reach without TLS or a proxy."""
    if settings.tls_cert is not None or settings.behind_proxy or is_loopback(settings.host):
        return None
    return f"Tokens are sent unencrypted to {settings.host}: TLS is not configured"


IN_THE_CLEAR_REMEDY = "use --tls-cert and --tls-key, or --behind-proxy if a proxy terminates TLS"


def expiry_of(certificate: Path) -> Instant:
    """Expiry of the first certificate in the file; raises ValueError or OSError."""
    return from_datetime(x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc)


def _certificate_state(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """The state of requests on a connection; uvicorn tells the application nothing about certificates."""
    peer = transport.get_extra_info("peercert")
    return {STATE: read_certificate(peer)} if peer else {}


def _check_readable(name: str, path: Path) -> None:
    """The library tells neither which file it was, nor that it is no file."""
    try:
        path.open("rb").close()
    except OSError as wrong:
        raise InvalidDefinition({name: [f"cannot read {path}: {wrong.strerror}"]}) from None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


# ── pending handshakes ────────────────────────────────────────────────────────────────────────────────


# The library would give somebody who says nothing a minute.
HANDSHAKE_SECONDS = 10.0
MOST_ARRIVING = 128
MOST_ARRIVING_OF_ADDRESS = 32


def arrivals() -> Seats:
    """Nobody has a lasting seat here."""
    return Seats(SeatLimits(0, 0, MOST_ARRIVING, MOST_ARRIVING_OF_ADDRESS))


class Arriving(asyncio.Protocol):
    """One such connection. As soon as it is secure, the protocol that `make` makes gets it."""

    def __init__(self, make: Callable[..., asyncio.Protocol], tls: Tls, seats: Seats) -> None:
        self._make = make
        self._tls = tls
        self._seats = seats
        self._early = bytearray()
        self._protocol: asyncio.Protocol | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        address = network_of(peer[0]) if peer else None
        seat = self._seats.take(self, address)
        self._securing = asyncio.get_running_loop().create_task(self._secure())
        self._securing.add_done_callback(lambda _: self._seats.give_back(self, seat, address))

    def leave(self) -> None:
        self._transport.abort()

    async def _secure(self) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                self._transport,
                self,
                self._tls.context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except OSError:  # of TLS too: another protocol, a version that is too old, a certificate that is not good
            return
        if secured is None or self._lost:
            return
        self._protocol = self._make(app_state=_certificate_state(secured))
        secured.set_protocol(self._protocol)
        self._protocol.connection_made(secured)
        if self._early:
            self._protocol.data_received(bytes(self._early))

    # What comes with the end of the handshake comes here, before there is anybody to hear it.

    def data_received(self, data: bytes) -> None:
        if self._protocol is None:
            self._early += data
        else:
            self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._protocol is None else self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._protocol is not None:
            self._protocol.connection_lost(exc)
