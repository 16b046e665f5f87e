"""The port on which a worker, which has no API, serves its metrics and probes."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from horarium.platform.http.connections import without_base
from horarium.platform.http.responses import problem
from horarium.settings import Settings, is_loopback

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
