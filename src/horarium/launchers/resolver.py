"""Host names to addresses: by the system, in threads of this process, within a time limit.

The look-up of the system blocks, cannot be cancelled, and takes as long as the name servers of the name want; a
tenant may own those. So look-ups are counted by group, which is the namespace:

- a group uses at most a quarter of the threads, and look-ups that wait for them delay their own group only;
- an abandoned look-up keeps its thread, and counts, until the system gives it up;
- one host is looked up once at a time for all groups, and the result is cached for a few seconds.

The cache weakens no check: addresses are checked at every use, and the checked address is dialled (`ssrf.py`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeAlias

from horarium.platform.clock import Clock, SystemClock
from horarium.platform.threads import ReusedThreads

THREADS = 32
SHARE_OF_A_GROUP = 4
LIMIT_SECONDS = 5.0
CACHE_SECONDS = 10.0
MAX_CACHED = 4_096
# A look-up that hangs for this many limits is taken for dead; the next who asks for the host begins another.
_DEAD_AFTER_LIMITS = 12

GetAddrInfo: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]
Asker: TypeAlias = "asyncio.Future[tuple[str, ...]]"
Found: TypeAlias = tuple[str, ...] | OSError | UnicodeError


@dataclass(eq=False, slots=True)
class _Lookup:
    """One question to the system. While it waits it stands in the queues of all groups that asked it."""

    host: str
    port: int
    askers: set[Asker] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    started: float | None = None


_Turn: TypeAlias = tuple[_Lookup, str]
"""A look-up and the group that it is counted against."""


class SystemResolver:
    """All state is behind a lock: threads settle their own accounts, whether or not the loop still runs."""

    def __init__(
        self,
        *,
        getaddrinfo: GetAddrInfo = socket.getaddrinfo,
        clock: Clock | None = None,
        threads: int = THREADS,
        limit_seconds: float = LIMIT_SECONDS,
        kept_seconds: float = CACHE_SECONDS,
    ) -> None:
        self._getaddrinfo = getaddrinfo
        self._clock = clock or SystemClock()
        self._most = threads
        self._share = max(threads // SHARE_OF_A_GROUP, 1)
        self._limit = limit_seconds
        self._kept_seconds = kept_seconds
        self._threads = ReusedThreads("horarium-resolver")
        self._lock = threading.Lock()
        self._known: dict[str, _Lookup] = {}
        self._waiting: OrderedDict[str, dict[str, _Lookup]] = OrderedDict()
        self._busy: Counter[str] = Counter()
        self._kept: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._closed = False

    @property
    def busy(self) -> dict[str, int]:
        """Number of threads of each group."""
        with self._lock:
            return dict(self._busy)

    @property
    def waiting(self) -> dict[str, int]:
        with self._lock:
            return {group: len(queue) for group, queue in self._waiting.items()}

    async def __call__(self, host: str, port: int, group: str = "") -> Sequence[str]:
        """Addresses in the order of the system's preference; raises OSError or UnicodeError when there are none."""
        numeric = numeric_address(host)
        if numeric is not None:
            return (numeric,)
        kept = self._kept.get(host)
        if kept is not None and kept[0] > self._clock.monotonic():
            return kept[1]
        loop = asyncio.get_running_loop()
        asker: Asker = loop.create_future()
        lookup = self._join(host, port, group, asker)
        timer = loop.call_later(self._limit, _give, asker, TimeoutError(f"took longer than {self._limit:g} s"))
        try:
            return await asker
        finally:
            timer.cancel()
            self._leave(lookup, asker)

    def close(self) -> None:
        """Whoever waits is told so; threads end as soon as the system lets them go."""
        with self._lock:
            self._closed = True
            askers = [asker for lookup in self._known.values() for asker in lookup.askers]
            self._waiting.clear()
            self._known.clear()
        for asker in askers:
            _tell(asker, OSError("the resolver is closed"))
        self._threads.close()

    def _join(self, host: str, port: int, group: str, asker: Asker) -> _Lookup:
        with self._lock:
            if self._closed:
                raise OSError("the resolver is closed")
            lookup = self._known.get(host)
            if lookup is None or self._is_dead(lookup):
                lookup = self._known[host] = _Lookup(host, port)
            lookup.askers.add(asker)
            if lookup.started is None:
                # Also where another group waits for it already: that group's turn may be long in coming.
                lookup.groups.add(group)
                self._waiting.setdefault(group, {})[host] = lookup
            turn = self._next()
        self._start(turn)
        return lookup

    def _leave(self, lookup: _Lookup, asker: Asker) -> None:
        """Remove an unwanted lookup from the queues, so that they cannot grow without bound."""
        with self._lock:
            lookup.askers.discard(asker)
            if lookup.started is None and not lookup.askers:
                self._take_out(lookup)
                if self._known.get(lookup.host) is lookup:
                    del self._known[lookup.host]

    def _is_dead(self, lookup: _Lookup) -> bool:
        return (
            lookup.started is not None and self._clock.monotonic() - lookup.started > _DEAD_AFTER_LIMITS * self._limit
        )

    def _take_out(self, lookup: _Lookup) -> None:
        for group in lookup.groups:
            queue = self._waiting.get(group, {})
            queue.pop(lookup.host, None)
            if not queue:
                self._waiting.pop(group, None)
        lookup.groups.clear()

    def _next(self) -> _Turn | None:
        """The look-up whose turn it is, counted from now on. Groups take turns; those with a full share are passed
        over, of which there are never more than the inverse of a share."""
        if self._busy.total() >= self._most:
            return None
        group = next((each for each in self._waiting if self._busy[each] < self._share), None)
        if group is None:
            return None
        self._waiting.move_to_end(group)
        lookup = next(iter(self._waiting[group].values()))
        self._take_out(lookup)
        self._busy[group] += 1
        lookup.started = self._clock.monotonic()
        return lookup, group

    def _start(self, turn: _Turn | None) -> None:
        while turn is not None:
            try:
                self._threads.start(partial(self._work, turn))
                return
            except RuntimeError as wrong:  # the system has no thread left, for this one and for those that wait
                turn = self._finish(turn, OSError(str(wrong)))

    def _work(self, turn: _Turn | None) -> None:
        """In a thread: this look-up, and then whatever waits."""
        while turn is not None:
            turn = self._finish(turn, self._ask(turn[0]))

    def _ask(self, lookup: _Lookup) -> Found:
        try:
            found = self._getaddrinfo(lookup.host, lookup.port, type=socket.SOCK_STREAM)
            return tuple(str(each[4][0]) for each in found)
        except (OSError, UnicodeError) as wrong:
            return wrong
        except BaseException as wrong:  # a thread that died of it would be counted for ever
            return OSError(f"{type(wrong).__name__}: {wrong}")

    def _finish(self, turn: _Turn, found: Found) -> _Turn | None:
        """Settles a look-up; the next one whose turn it is now is the caller's to begin."""
        lookup, group = turn
        with self._lock:
            self._busy[group] -= 1
            if not self._busy[group]:
                del self._busy[group]
            if self._known.get(lookup.host) is lookup:
                del self._known[lookup.host]
            if isinstance(found, tuple):
                self._keep(lookup.host, found)
            askers = list(lookup.askers)
            following = self._next()
        for asker in askers:
            _tell(asker, found)
        return following

    def _keep(self, host: str, found: tuple[str, ...]) -> None:
        """All are kept equally long, so the first in the dictionary is the first to go."""
        now = self._clock.monotonic()
        self._kept.pop(host, None)
        self._kept[host] = (now + self._kept_seconds, found)
        while self._kept and (len(self._kept) > MAX_CACHED or next(iter(self._kept.values()))[0] <= now):
            del self._kept[next(iter(self._kept))]


@lru_cache(maxsize=MAX_CACHED)
def numeric_address(host: str) -> str | None:
    """The address, for hosts that are one in any spelling the system knows, `127.1` and `0x7f000001` too."""
    if not host or not (host[0].isdigit() or ":" in host):
        return None
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    with suppress(OSError):
        # It reads no further than a blank, which no host name holds.
        return None if any(map(str.isspace, host)) else socket.inet_ntoa(socket.inet_aton(host))
    return None


def _tell(asker: Asker, found: Found) -> None:
    # The loop of whoever asked may have closed in the meantime: then nobody waits any more.
    with suppress(RuntimeError):
        asker.get_loop().call_soon_threadsafe(_give, asker, found)


def _give(asker: Asker, found: Found) -> None:
    if asker.done():
        return
    if isinstance(found, tuple):
        asker.set_result(found)
    else:
        asker.set_exception(found)
