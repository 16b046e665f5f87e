"""Connections that have not agreed on TLS yet: a few at a time, and none for long.

They are files like any other, and what stands behind TLS does not see them, so whoever opens many and says nothing
would take all files of the process. When there are too many, the one that has waited longest leaves, and an address
pushes out its own first: an honest handshake is done in a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from horarium.platform.http.connections import network_of
from horarium.serve.seats import SeatLimits, Seats
from horarium.serve.tls import Tls

# The library would give somebody who says nothing a minute.
HANDSHAKE_SECONDS = 10.0
MOST_ARRIVING = 128
MOST_ARRIVING_OF_ADDRESS = 32


def arrivals() -> Seats:
    """Nobody has a lasting seat here."""
    return Seats(SeatLimits(0, 0, MOST_ARRIVING, MOST_ARRIVING_OF_ADDRESS))


class Arriving(asyncio.Protocol):
    """One such connection. It is made for whatever `make` makes, which gets it as soon as it is secure."""

    def __init__(self, make: Callable[[], asyncio.Protocol], tls: Tls, seats: Seats) -> None:
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
        self._protocol = self._make()
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
