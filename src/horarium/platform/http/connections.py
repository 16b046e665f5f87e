"""Properties of a connection: client address, base path, client certificate, rate limits."""

from __future__ import annotations

import ipaddress
import math
import re
import ssl
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from starlette.types import Scope

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.platform.clock import Clock
from horarium.platform.errors import OperationError, Unauthorized
from horarium.platform.settings import CertificateHolder, Settings
from horarium.platform.wire import Role

# A scope without a peer: a Unix socket, or a server of another make.
UNKNOWN = "unknown"
_MAX_ADDRESS = 64
_MAX_FORWARDED = 4_096
_MAX_HOPS = 32

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(scope: Scope) -> str:
    """Never empty, at most 64 characters: an IP address in its shortest spelling, where it is one."""
    peer = (scope.get("client") or (UNKNOWN,))[0] or UNKNOWN
    settings: Settings | None = _settings(scope)
    if settings is None or not settings.behind_proxy:
        return nearest_client(peer, b"", ())
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return nearest_client(peer, forwarded, _networks(settings.trusted_proxies))


def seen_scheme(scope: Scope) -> str:
    """Scheme of the client: `https` also where a trusted proxy that terminates TLS reports it (`X-Forwarded-Proto`)."""
    scheme, settings = str(scope.get("scheme", "http")), _settings(scope)
    if settings is None or not settings.behind_proxy:
        return scheme
    peer = _address((scope.get("client") or (UNKNOWN,))[0] or UNKNOWN)
    if peer is None or not any(peer in network for network in _networks(settings.trusted_proxies)):
        return scheme
    told = [value for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    last = told[-1][-_MAX_FORWARDED:].rpartition(b",")[2].strip().lower() if told else b""
    return last.decode() if last in (b"http", b"https") else scheme


def nearest_client(peer: str, forwarded: bytes, proxies: Sequence[Network]) -> str:
    """The first that is no proxy of ours, from the peer backwards; where an entry is no address, whoever wrote it."""
    address = _address(peer)
    if address is None:
        return peer[:_MAX_ADDRESS]
    entries = forwarded[-_MAX_FORWARDED:].decode("latin-1").split(",")[-_MAX_HOPS:]
    while entries and any(address in network for network in proxies):
        before = _address(_without_port(entries.pop().strip()))
        if before is None:
            break
        address = before
    return str(address)


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


def _settings(scope: Scope) -> Settings | None:
    resources = getattr(getattr(scope.get("app"), "state", None), "resources", None)
    return None if resources is None else resources.settings


def _address(text: str) -> _Address | None:
    """An IPv4 address that came over an IPv6 socket is the same one: it must not count twice."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _without_port(entry: str) -> str:
    """`192.0.2.1:4711`, `[2001:db8::1]` and `[2001:db8::1]:4711` as some proxies write them."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def base_of(scope: Scope) -> str:
    """Without a slash at its end; empty = at the root."""
    return str(scope.get("root_path") or "").rstrip("/")


def inner_path(scope: Scope) -> str:
    """The path as the routes spell it."""
    return without_base(scope["path"], base_of(scope))


def without_base(path: str, base: str) -> str:
    """`/jobs/docs` and `/docs` are `/docs` under `/jobs`; `/jobsite` is another path."""
    if not base or not (path == base or path.startswith(f"{base}/")):
        return path
    return path[len(base) :] or "/"


def based(scope: Scope, base: str) -> Scope:
    """As seen under the base of the setting; whoever has mounted us knows better."""
    if not base or base_of(scope):
        return scope
    return {**scope, "root_path": base, "path": base + without_base(scope["path"], base)}


def check_base(base: str, paths: Iterable[str]) -> None:
    """Raises InvalidDefinition for one with which nobody could tell whether a proxy has taken it away."""
    first = base.split("/")[1:2]
    taken = {path.split("/")[1] for path in paths}
    if base and taken.intersection(first):
        raise InvalidDefinition({"base_path": [f"/{first[0]} is a path of this service. Choose another one."]})


STATE = "certificate"
_MAX_NAMES = 20
_MAX_NAME = 255
# What a name of each kind looks like: one that is written as another kind could pass for it.
_SHAPES: Mapping[str, re.Pattern[str]] = {
    "DNS": re.compile(r"[A-Za-z0-9*_.-]+"),
    "URI": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+"),
    "email": re.compile(r"[!-9;-?A-~]+@[A-Za-z0-9.-]+"),
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """One that was found good when its bearer connected. `expires_at` is in seconds since the epoch."""

    names: tuple[str, ...]
    expires_at: float


def certificate_of(scope: Scope) -> Certificate | None:
    found: Certificate | None = (scope.get("state") or {}).get(STATE)
    return found


def read_certificate(peer: Mapping[str, Any]) -> Certificate:
    """Read what the library returns for a verified one.

    The common name counts where it has no other (RFC 6125).
    """
    others = peer.get("subjectAltName", ())
    if others:
        names = [text for kind, text in others if kind in _SHAPES and _SHAPES[kind].fullmatch(text)]
    else:
        subject = (pair for part in peer.get("subject", ()) for pair in part)
        names = [text for kind, text in subject if kind == "commonName" and ":" not in text]
    good = tuple(name_of(text) for text in names if text.isprintable() and 0 < len(text) <= _MAX_NAME)
    return Certificate(good[:_MAX_NAMES], ssl.cert_time_to_seconds(peer["notAfter"]))


def name_of(text: str) -> str:
    """Hosts are the same in capitals; addresses of mail and URIs need not be."""
    return text if "@" in text or ":" in text else text.lower()


class Holders:
    """Those whom the operator knows by their certificates."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Raises InvalidDefinition."""
        self._clock = clock
        self._known = {name_of(name): _checked(name, each) for name, each in settings.tls_principals.items()}

    def __bool__(self) -> bool:
        """Where nobody is known, a certificate opens the connection and says nothing about who asks."""
        return bool(self._known)

    def identify(self, certificate: Certificate) -> tuple[str, Role, str]:
        """Principal, role and home; raises Unauthorized."""
        if self._clock.now() >= certificate.expires_at * SECOND:  # a connection may outlive it
            raise Unauthorized("The client certificate has expired.")
        found = next((self._known[name] for name in certificate.names if name in self._known), None)
        if found is None:
            raise Unauthorized("Client certificate not recognised.")
        return found.principal, Role(found.role), found.namespace


def _checked(name: str, holder: CertificateHolder) -> CertificateHolder:
    if holder.role not in set(Role):
        raise InvalidDefinition({f"tls_principals.{name[:64]}.role": [f"must be one of {', '.join(Role)}"]})
    if not holder.principal.isprintable():
        raise InvalidDefinition({f"tls_principals.{name[:64]}.principal": ["must be printable"]})
    return holder


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
