"""From which address a request comes: that of whoever is connected, unless that is a proxy of ours that names another.

`X-Forwarded-For` and `X-Forwarded-Proto` can be written by anybody. They are read only with the setting `behind_proxy`,
only from a peer among `trusted_proxies`, and from their end: the last entry is what our own proxy saw, those before it
are hearsay.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from horarium.settings import Settings

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
