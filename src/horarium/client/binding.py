"""Rules for sending a token: a token stored or set for one server is sent to no other."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}


def same_server(one: str, other: str) -> bool:
    """Tell whether two URLs have the same scheme, host, port and path. An invalid URL matches none."""
    here, there = _place(one), _place(other)
    return here is not None and here == there


def on_this_machine(url: str) -> bool:
    """Tell whether a URL can only lead to this machine."""
    place = _place(url)
    if place is None:
        return False
    host = place[1]
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _place(url: str) -> tuple[str, str, int, str] | None:
    try:
        parts = urlsplit(url.strip())
        port = _port(parts)
    except ValueError:
        return None
    if parts.hostname is None or port is None:
        return None
    return parts.scheme.lower(), parts.hostname.lower(), port, parts.path.rstrip("/")


def _port(parts: SplitResult) -> int | None:
    """Raises ValueError for a port that is no number."""
    return parts.port if parts.port is not None else _PORTS.get(parts.scheme.lower())
