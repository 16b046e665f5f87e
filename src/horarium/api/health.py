"""Whether the service lives, is healthy and is ready, and what it counts.

| path       | says 200 while                                                                 |
|------------|--------------------------------------------------------------------------------|
| `/livez`   | the process answers at all                                                     |
| `/healthz` | the database answers and has our tables                                        |
| `/readyz`  | that, and a ticker completes its steps, and no occurrence waits for too long   |
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version

from fastapi import APIRouter, Request, Response

from horarium.api.answers import Answer
from horarium.api.requests import ResourcesOf, caller_of
from horarium.errors import HorariumError
from horarium.operations import health
from horarium.operations.health import Readiness
from horarium.telemetry.metrics import CONTENT_TYPE

router = APIRouter(tags=["health"])

_DATABASE_CHECKS = frozenset({"migrated", "database"})


@router.get("/livez")
def live() -> Answer:
    return Answer({"status": "ok"})


@router.get("/healthz")
@router.get("/api/health")
def healthy(resources: ResourcesOf) -> Answer:
    found = health.ready(resources)
    return _answer(found, good=all(check.passed for check in found.checks if check.name in _DATABASE_CHECKS))


@router.get("/readyz")
def ready(resources: ResourcesOf) -> Answer:
    found = health.ready(resources)
    return _answer(found, good=found.ready)


@router.get("/metrics")
def metrics(request: Request, resources: ResourcesOf) -> Response:
    """Open to everybody only where the service itself can be reached from this machine alone."""
    if not request.app.state.open_metrics:
        caller_of(request)
    with suppress(HorariumError):  # without the database there is still what this process has counted
        health.observe(resources)
    return Response(resources.telemetry.metrics.render(), media_type=CONTENT_TYPE)


def _answer(found: Readiness, *, good: bool) -> Answer:
    checks = [
        {"name": check.name, "passed": check.passed, "detail": check.detail, "remedy": check.remedy}
        for check in found.checks
    ]
    body = {
        "status": "ok" if good else "failing",
        "ready": found.ready,
        "version": version("horarium"),
        "tzdata": found.tzdata,
        "checks": checks,
    }
    return Answer(body, 200 if good else 503)
