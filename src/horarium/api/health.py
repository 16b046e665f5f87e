"""Probes of the service, and its metrics.

| path       | says 200 while                                                                 |
|------------|--------------------------------------------------------------------------------|
| `/livez`   | the process answers at all                                                     |
| `/healthz` | the database answers and has our tables                                        |
| `/readyz`  | that, and a ticker completes its steps, and no occurrence waits for too long;  |
|            | a process that does not decide reports the last two, and is ready              |

A process that was told to stop says 503 at the last two from then on: a proxy sends its requests to another.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from fastapi import Request, Response

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.base_path import without_base
from horarium.api.probe_cache import ProbeCache
from horarium.api.requests import ResourcesOf, caller_of
from horarium.api.routing import OPEN, OPERATIONS, READ, Routes
from horarium.api.shortages import Shortages
from horarium.operations import health as probes
from horarium.operations.health import Readiness
from horarium.recurrence.zone import tzdata_version
from horarium.telemetry.metrics import CONTENT_TYPE
from horarium.wire.service import Check, Health

routes = Routes(tag="health")

_SERVING = "serving"
_OWN_CHECKS = frozenset({"migrated", "database", _SERVING})
_NOT_ASKED = probes.Check("database", False, "the database was not checked: no thread or file descriptor is available")
_LEAVING = probes.Check(_SERVING, False, "this process is shutting down", "send requests to another process")


@routes(
    "GET",
    "/livez",
    needs=OPEN,
    summary="Check that the process responds",
    answer=Health,
    example=Health(status="ok"),
)
async def liveness() -> Reply:
    """Runs in no thread, so it responds even when all threads are busy."""
    return Reply(Health(status="ok"))


_HEALTH: dict[str, Any] = {
    "needs": OPEN,
    "summary": "Check that the database responds",
    "answer": Health,
    "also": (503,),
    "example": examples.PROBE,
}


@routes("GET", "/healthz", **_HEALTH)
@routes("GET", "/api/health", name="health_under_prefix", **_HEALTH)
async def health(request: Request) -> Reply:
    found = await _found(request)
    return _reply(found, good=all(check.passed for check in found.checks if check.name in _OWN_CHECKS))


@routes(
    "GET",
    "/readyz",
    needs=OPEN,
    summary="Check that the service is ready",
    answer=Health,
    also=(503,),
    example=examples.PROBE,
)
async def readiness(request: Request) -> Reply:
    found = await _found(request)
    return _reply(found, good=found.ready)


@routes(
    "GET",
    "/metrics",
    needs=READ,
    summary="Show the metrics",
    media_type="text/plain",
    example="horarium_ticks_total 812.0",
)
def metrics(request: Request, resources: ResourcesOf) -> Response:
    """Prometheus text format. Requires a token of the default namespace, because the metrics cover all tenants; the
    setting `metrics_open` removes this requirement.

    Gauges of the installation are at most 5 seconds old and omitted while the database does not respond.
    """
    if not request.app.state.metrics_open:
        caller_of(request).require_house(READ)
    cache: ProbeCache = request.app.state.probes
    rendered = resources.telemetry.metrics.render(engine=cache.decides, installation=cache.installation())
    return Response(rendered, media_type=CONTENT_TYPE)


async def _found(request: Request) -> Readiness:
    cache: ProbeCache = request.app.state.probes
    shortages: Shortages = request.app.state.shortages
    try:
        found = await cache.readiness()
    except (OSError, RuntimeError) as error:
        if shortages.note(error) is None:
            raise
        found = Readiness((_NOT_ASKED,), tzdata_version())
    if (lacking := shortages.current()) is not None:
        found = replace(found, checks=(*found.checks, probes.Check("resources", False, lacking)))
    leaving: threading.Event = request.app.state.draining
    return replace(found, checks=(*found.checks, _LEAVING)) if leaving.is_set() else found


def _reply(found: Readiness, *, good: bool) -> Reply:
    checks = (
        Check(name=each.name, passed=each.passed, detail=each.detail, remedy=each.remedy) for each in found.checks
    )
    answer = Health(
        status="ok" if good else "failing",
        ready=found.ready,
        version=version("horarium"),
        tzdata=found.tzdata,
        checks=tuple(checks),
    )
    return Reply(answer, 200 if good else 503)


PROBES = frozenset(path for (_, path), each in OPERATIONS.items() if each.tag == "health" and each.needs is OPEN)
"""Paths of probes, which are answered even under full load."""


def is_probe(path: str, base: str = "") -> bool:
    """Tell whether the path is a probe: monitoring may call it with the base path or without."""
    return without_base(path, base) in PROBES
