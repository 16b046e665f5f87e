"""How often one token may ask, and one address fail: a bucket that fills steadily and holds no more than a burst."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from collections.abc import Callable

from horarium.clock import Clock
from horarium.operations.errors import OperationError

# A bucket that is forgotten is full again; of so many, the one that was idle longest is full anyway.
_MOST_BUCKETS = 10_000


class RateLimited(OperationError):
    """`seconds`: how long to wait, at least."""

    reason = "rate_limited"
    status = 429

    says = "Too many requests with this token. Wait, then retry."

    def __init__(self, seconds: float) -> None:
        super().__init__(self.says)
        self.seconds = max(1, math.ceil(seconds))


class LoginsFailed(RateLimited):
    """Only whoever fails hears it: a good token from the same address goes on."""

    reason = "too_many_failed_logins"
    says = "Too many failed logins from this address. Wait, then retry."


class TooManyStreams(RateLimited):
    reason = "too_many_streams"
    says = "Too many streams are open. Close one, or wait."


class Buckets:
    """Rate limits of this process: several processes allow several times as much."""

    def __init__(
        self, clock: Clock, *, per_second: float, burst: int, refused: Callable[[float], RateLimited] = RateLimited
    ) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._refused = refused
        self._lock = threading.Lock()
        self._left: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, key: bytes) -> None:
        """Raises RateLimited when the bucket is empty."""
        with self._lock:
            now = self._clock.monotonic()
            left, at = self._left.pop(key, (float(self._burst), now))
            left = min(self._burst, left + (now - at) * self._per_second)
            enough = left >= 1
            self._left[key] = (left - 1 if enough else left, now)
            if len(self._left) > _MOST_BUCKETS:
                self._left.popitem(last=False)
        if not enough:
            raise self._refused((1 - left) / self._per_second)


class FailedLogins:
    """Counts for each address what was shown and was no good."""

    def __init__(self, clock: Clock, *, per_minute: int) -> None:
        self._buckets = Buckets(clock, per_second=per_minute / 60, burst=per_minute, refused=LoginsFailed)

    def count(self, address: str) -> None:
        """Raises LoginsFailed where there were too many."""
        self._buckets.take(network_of(address).encode())


def network_of(address: str) -> str:
    """Network that counts as one client: an IPv4 address, or a /64 of IPv6, since a single machine has all of it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
