"""ASGI applications around the API: the check of the host name, a server that stops, and metrics.

A request under another host name than ours is refused: its owner may let the name point to this service, and a page
of theirs, open in a browser inside our network, would then have the same origin as this service (DNS rebinding). Our
names are the ones that the service listens on and is reached by, `localhost` if it listens on this machine alone,
and `allowed_hosts`. A service that listens for other machines also accepts an address, or a name without a dot: a
stranger can register neither. Probes are answered under any name.

A server behind a proxy announces its end and closes its port later. Its probes fail first, so that a proxy that
reads them sends nothing new, and each response asks to close the connection. Late requests are still answered. Then
streams end, the port is closed, and requests in progress are finished.

A worker has no API and serves its metrics and probes on a port of its own.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from horarium.features.cluster.probes import is_probe
from horarium.platform.http.connections import without_base
from horarium.platform.http.responses import problem
from horarium.platform.settings import Settings, is_loopback

# ── host names ────────────────────────────────────────────────────────────────────────────────────────


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class Hosts:
    """`names` in lower case; one that begins with a dot stands for all below it. `local`: only this machine asks."""

    names: frozenset[str]
    local: bool
    anything: bool = False


def hosts_of(settings: Settings) -> Hosts:
    own = {settings.host, urlsplit(settings.own_url).hostname or "", *settings.allowed_hosts}
    names = {name.lower().strip("[]").removeprefix("*") for name in own if name and name != "*"}
    return Hosts(frozenset(names), is_loopback(settings.host), "*" in settings.allowed_hosts)


def host_name(header: str) -> str | None:
    """Without its port; None for what is no host."""
    if not 0 < len(header) <= _LONGEST:
        return None
    try:
        name = urlsplit(f"//{header}").hostname
    except ValueError:
        return None
    return None if name is None or "@" in header or "/" in header else name.rstrip(".").lower()


def is_ours(name: str | None, hosts: Hosts) -> bool:
    if hosts.anything:
        return True
    if not name:
        return False
    if name in hosts.names or any(each.startswith(".") and name.endswith(each) for each in hosts.names):
        return True
    if hosts.local:
        return name in _LOCAL or name.endswith(".localhost")
    return "." not in name.strip("[]") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class HostCheck:
    """Around the application where it is served by us; inside another program that one's server decides."""

    def __init__(self, app: ASGIApp, hosts: Hosts, base: str = "") -> None:
        self._app = app
        self._base = base
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_probe(scope["path"], self._base):
            given = next((value for name, value in scope["headers"] if name == b"host"), b"")
            if not is_ours(host_name(given.decode("latin-1")), self._hosts):
                await _REFUSED(scope, receive, send)
                return
        await self._app(scope, receive, send)


_REFUSED = problem(
    421,
    "unknown_host",
    "The Host header names a host that this service does not accept. Add it to allowed_hosts, or set public_url.",
)


# ── a stopping server ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Leaving:
    """`draining` is heard by probes, `closing` by streams."""

    draining: threading.Event
    closing: threading.Event
    drain_seconds: float

    async def begin(self, serving: asyncio.Task[Any]) -> None:
        """Returns when the door may be closed: after a while, or when nobody serves any more."""
        self.draining.set()
        await self.linger(serving)
        self.closing.set()  # they would go on for ever

    async def linger(self, serving: asyncio.Task[Any]) -> None:
        if self.drain_seconds > 0:
            await asyncio.wait([serving], timeout=self.drain_seconds)


class LastAnswers:
    """Around the application: while it is leaving, no connection outlives its answer."""

    def __init__(self, app: ASGIApp, draining: threading.Event) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] == "http.response.start" and self._draining.is_set():
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, last)


# ── metrics of a worker ───────────────────────────────────────────────────────────────────────────────


PATHS: Final = frozenset({"/metrics", "/livez", "/readyz"})
_NOT_HERE = problem(
    404, "not_found", f"This worker port serves only {', '.join(sorted(PATHS))}. Send other requests to a server."
)


class MetricsOnly:
    """Around the application: everything but metrics and probes is not found."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        served = scope["type"] != "http" or without_base(scope["path"], self._base) in PATHS
        await (self._app if served else _NOT_HERE)(scope, receive, send)


def port_settings(settings: Settings) -> Settings:
    """Return the settings of the port: its address, and no delay for a proxy, which sends nothing here."""
    return settings.model_copy(update={"host": settings.metrics_host, "drain_seconds": 0.0})


def is_open(settings: Settings) -> bool:
    """On loopback the metrics of a worker need no token; elsewhere `metrics_open` decides."""
    return settings.metrics_open or is_loopback(settings.metrics_host)
