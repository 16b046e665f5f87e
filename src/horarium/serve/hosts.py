"""Under which names this service is asked: any other name is somebody else's, who lets it point to us.

A page of theirs, open in a browser inside our network, would then be of the same origin as this service (DNS
rebinding). The names that are ours: what we listen on and what we are reached by, `localhost` where we listen on this
machine alone, and `allowed_hosts`. Where we listen for other machines, an address, or a name without a dot, will do:
neither can be registered by a stranger. Probes are answered whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from horarium.features.cluster.probes import is_probe
from horarium.platform.http.responses import problem
from horarium.settings import Settings, is_loopback

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
