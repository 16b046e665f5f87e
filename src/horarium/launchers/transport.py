"""How a guarded request travels: to the address that was checked, under the name that was asked for.

The name is resolved once; the connection goes to that address with the name in `Host` and in the TLS
handshake. A second look-up, which could answer differently (DNS rebinding), never happens.

No connection is kept. An idle one that the far end has just closed looks like a request that was lost
half-way, and every such loss would be an `Unknown`; also, a kept TLS connection to an address shared
by two names was verified for one of them only.
"""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from horarium.launchers.ssrf import Forbidden, Guard, Permitted, Unresolved

CONNECT_TIMEOUT_SECONDS = 10.0
_DEFAULT_PORTS = {"http": 80, "https": 443}


class TargetForbidden(httpx.TransportError):
    """The guard said no; nothing was sent."""


class GuardedTransport(httpx.AsyncBaseTransport):
    def __init__(self, guard: Guard, *, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._inner = httpx.AsyncHTTPTransport(
            verify=tls if tls is not None else True,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.scheme not in _DEFAULT_PORTS:
            raise TargetForbidden(f"only http and https are launched, not {url.scheme!r}")
        # The name as it is written in `Host`: decoded and encoded again, `xn--fa-hia` (faß) would become `fass`.
        name = url.raw_host.decode("ascii")
        group = str(request.extensions.get("group", ""))
        verdict = await self._guard.judge(name, url.port or _DEFAULT_PORTS[url.scheme], group)
        match verdict:
            case Permitted(addresses):
                return await self._dial(request, addresses)
            case Forbidden(error):
                raise TargetForbidden(error)
            case Unresolved(error):
                raise httpx.ConnectError(error)

    async def _dial(self, request: httpx.Request, addresses: tuple[str, ...]) -> httpx.Response:
        """The next address is tried only while nothing has been sent: a failed connect cannot have delivered."""
        for address in addresses[:-1]:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, addresses[-1]))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx.Request, address: str) -> httpx.Request:
    name = request.url.raw_host.decode("ascii").rstrip(".")
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,  # holds `Host` with the name, written when the request was built
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": name},
    )


def guarded_client(guard: Guard, *, tls: ssl.SSLContext | None = None) -> httpx.AsyncClient:
    """A client that obeys the guard, no proxy variable, and no redirect; whole deadlines are the caller's."""
    return httpx.AsyncClient(
        transport=GuardedTransport(guard, tls=tls),
        follow_redirects=False,
        trust_env=False,
        headers={"user-agent": "horarium"},
        # One client serves all namespaces: a cookie set for one of them must not be sent for another.
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_SECONDS),
    )
