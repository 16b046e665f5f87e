"""How often one token may ask: a bucket that fills steadily and holds no more than a burst."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict

from horarium.clock import Clock
from horarium.operations.errors import OperationError

# A bucket that is forgotten is full again; of so many, the one that was idle longest is full anyway.
_MOST_BUCKETS = 10_000


class RateLimited(OperationError):
    """`seconds`: how long to wait, at least."""

    reason = "rate_limited"
    status = 429

    def __init__(self, seconds: float) -> None:
        super().__init__("too many requests with this token; wait, then go on")
        self.seconds = max(1, math.ceil(seconds))


class Buckets:
    """Of this process: several processes give several times as much."""

    def __init__(self, clock: Clock, *, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
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
            raise RateLimited((1 - left) / self._per_second)


def network_of(address: str) -> str:
    """What counts as one client: an IPv4 address; of IPv6 a /64, since a single machine has all of it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
