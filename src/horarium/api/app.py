"""Assemble the routes into one application.

Routes have no trailing slash and redirect to none: the Durable Workflow client follows no redirects.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from horarium.api import (
    admin,
    agenda,
    agents,
    assignments,
    audit,
    bulk,
    bundles,
    calendars,
    cluster,
    conditions,
    docs,
    drafts,
    feed,
    guards,
    health,
    history,
    launches,
    namespaces,
    overviews,
    previews,
    registrar,
    reruns,
    revisions,
    run_logs,
    run_reports,
    runs,
    schedules,
    secrets,
    sessions,
    subscriptions,
    teams,
    tokens,
    triggers,
    ui,
    workflows,
    workspaces,
)
from horarium.api.answers import Reply
from horarium.api.auth import Authenticator
from horarium.api.base_path import check_base
from horarium.api.error_member import telling_error
from horarium.api.feed_pages import FeedPages
from horarium.api.limits import FailedLogins
from horarium.api.middleware import RequestMiddleware
from horarium.api.openapi import Api
from horarium.api.probe_cache import ProbeCache
from horarium.api.problems import on_bad_parameters, on_routing
from horarium.api.refusals import Refusals, on_counted_refusal
from horarium.api.request_bodies import SHARED_BYTES, BodyBudget
from horarium.api.routing import OPERATIONS, Routes
from horarium.api.session_cookies import SessionCookies
from horarium.api.shortages import Shortages
from horarium.api.streams import Streams
from horarium.api.turns import Turns, turn_limits
from horarium.api.ui_files import UiFiles
from horarium.errors import HorariumError
from horarium.features.approvals import routes as approval_routes
from horarium.operations.resources import Resources


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """`own_secret` is the token of code in this very process, which nobody else can know."""

    resources: Resources
    own_secret: str | None = None


ROUTES: tuple[Routes, ...] = (
    schedules.routes,
    bulk.routes,
    triggers.routes,
    guards.routes,
    previews.routes,
    drafts.routes,
    conditions.routes,
    revisions.routes,
    agenda.routes,
    overviews.routes,
    history.routes,
    runs.routes,
    run_reports.routes,
    reruns.routes,
    approval_routes.run_routes,
    approval_routes.routes,
    run_logs.routes,
    launches.routes,
    calendars.routes,
    workflows.routes,
    bundles.routes,
    feed.routes,
    subscriptions.routes,
    secrets.routes,
    agents.routes,
    tokens.agent_routes,
    teams.routes,
    assignments.routes,
    tokens.routes,
    sessions.routes,
    namespaces.routes,
    audit.routes,
    cluster.routes,
    health.routes,
    admin.routes,
    registrar.routes,
    workspaces.routes,
    docs.routes,
    ui.routes,
    schedules.waterline,
    history.waterline,
)


def make_api(options: ApiOptions) -> FastAPI:
    """Raises InvalidDefinition for keys of signed tokens, or a base path, that cannot be used."""
    resources = options.resources
    api = Api(
        title="Horarium",
        version=version("horarium"),
        summary="Durable scheduling for workflows and agents.",
        redirect_slashes=False,
        default_response_class=Reply,
        docs_url=None,  # FastAPI's own page loads from elsewhere; `docs` serves one that does not
        redoc_url=None,
    )
    api.state.resources = resources
    api.state.authenticator = Authenticator(resources, options.own_secret)
    api.state.ui_files = UiFiles()
    api.state.sessions = SessionCookies(resources.tokens.key)
    settings = resources.settings
    api.state.failed_logins = FailedLogins(resources.clock, per_minute=settings.failed_logins_per_minute)
    api.state.refusals = Refusals(resources)
    api.state.streams = Streams(of_token=settings.streams_per_token, most=settings.max_streams)
    api.state.feed_pages = FeedPages()
    api.state.body_budget = BodyBudget(max(SHARED_BYTES, settings.body_limit_bytes))
    api.state.shortages = Shortages(resources.clock, resources.telemetry.log)
    api.state.turns = Turns(turn_limits(settings.pool_size, settings.requests_per_token))
    api.state.probes = ProbeCache(resources)
    api.state.metrics_open = settings.metrics_open
    api.state.draining = threading.Event()  # set when it is told to stop; probes say so
    api.state.closing = threading.Event()  # set when the service stops; streams end by it
    for routes in ROUTES:
        # Not `include_router`: each application would analyse every route anew, at its first requests.
        api.router.routes.extend(routes.router.routes)
    api.add_exception_handler(HorariumError, telling_error(on_counted_refusal))
    api.add_exception_handler(HTTPException, telling_error(on_routing))
    api.add_exception_handler(RequestValidationError, telling_error(on_bad_parameters))
    check_base(settings.base_path, (path for _, path in OPERATIONS))
    api.add_middleware(
        RequestMiddleware,
        body_limit=settings.body_limit_bytes,
        budget=api.state.body_budget,
        shortages=api.state.shortages,
        log=resources.telemetry.log,
        base_path=settings.base_path,
    )
    return api
