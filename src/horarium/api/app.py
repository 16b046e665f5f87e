"""Puts the routes together into one application.

Routes have no trailing slash and redirect to none: the Durable Workflow client follows no redirects.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from horarium.api import cluster, firing, health, history, runs, schedules
from horarium.api.answers import Answer
from horarium.api.middleware import Envelope
from horarium.api.problems import on_bad_parameters, on_refusal, on_routing
from horarium.errors import HorariumError
from horarium.operations.desk import Desk


@dataclass(frozen=True, slots=True)
class Doorway:
    """`open_metrics`: whether metrics are shown to callers without a token."""

    desk: Desk
    open_metrics: bool = False


def make_api(doorway: Doorway) -> FastAPI:
    desk = doorway.desk
    api = FastAPI(
        title="Horarium",
        version=version("horarium"),
        summary="When could it happen, whether it does, and why: a durable scheduler.",
        redirect_slashes=False,
        default_response_class=Answer,
    )
    api.state.desk = desk
    api.state.open_metrics = doorway.open_metrics
    for router in (schedules.router, firing.router, history.router, runs.router, cluster.router, health.router):
        api.include_router(router)
    api.add_exception_handler(HorariumError, on_refusal)
    api.add_exception_handler(HTTPException, on_routing)
    api.add_exception_handler(RequestValidationError, on_bad_parameters)
    api.add_middleware(Envelope, body_limit=desk.settings.body_limit_bytes, log=desk.telemetry.log)
    return api
