"""Who may have a connection: so many in all, a share of them for one address, and a few more that may only ask probes.

Whoever watches the service must hear from it also when everything is taken. What a connection will ask is not known
before it is read, so those beyond the limits are let in, answer probes and refuse everything else. They are a
reserve that cannot be occupied: when it is full, the one that has waited longest leaves, and an address pushes out
its own first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

RESERVE = 32
RESERVE_OF_ADDRESS = 8


class Seat(Enum):
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


def seat_for(limits: SeatLimits, taken: int, taken_by_address: int) -> Seat:
    fits = taken < limits.most and taken_by_address < limits.of_address
    return Seat.ANYTHING if fits else Seat.PROBES


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

    def take(self, who: Leaves, address: str | None) -> Seat:
        of_address = 0 if address is None else self._by_address[address]
        seat = seat_for(self._limits, self._taken, of_address)
        if seat is Seat.ANYTHING:
            self._taken += 1
            if address is not None:
                self._by_address[address] += 1
        else:
            self._make_room(address)
            self._reserve[who] = address
        return seat

    def give_back(self, who: Leaves, seat: Seat, address: str | None) -> None:
        if seat is Seat.PROBES:
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
