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

from horarium.compat.registrar import routes as registrar_routes
from horarium.compat.workspaces import routes as workspace_routes
from horarium.errors import HorariumError
from horarium.features.agents import routes as agent_routes
from horarium.features.agents import team_routes
from horarium.features.approvals import routes as approval_routes
from horarium.features.audit import routes as audit_routes
from horarium.features.bundles import routes as bundle_routes
from horarium.features.calendars import routes as calendar_routes
from horarium.features.cluster import probes
from horarium.features.cluster import routes as cluster_routes
from horarium.features.cluster.probes import ProbeCache
from horarium.features.forecast import agenda_routes
from horarium.features.forecast import routes as forecast_routes
from horarium.features.history import routes as history_routes
from horarium.features.history.streams import FeedPages, Streams
from horarium.features.resources import Resources
from horarium.features.runs import report_routes
from horarium.features.runs import routes as run_routes
from horarium.features.schedules import bulk_routes, draft_routes, guard_routes
from horarium.features.schedules import routes as schedule_routes
from horarium.features.secrets import routes as secret_routes
from horarium.features.tenants import routes as tenant_routes
from horarium.features.tenants import session_routes
from horarium.features.webhooks import routes as webhook_routes
from horarium.features.workflows import routes as workflow_routes
from horarium.platform.http import documentation, interface
from horarium.platform.http.audited import Refusals, on_counted_refusal
from horarium.platform.http.authentication import Authenticator
from horarium.platform.http.browser_sessions import SessionCookies
from horarium.platform.http.connections import FailedLogins, check_base
from horarium.platform.http.interface import UiFiles
from horarium.platform.http.limits import SHARED_BYTES, BodyBudget, Turns, turn_limits
from horarium.platform.http.middleware import RequestMiddleware, Shortages
from horarium.platform.http.openapi import Api
from horarium.platform.http.responses import Reply, on_bad_parameters, on_routing, telling_error
from horarium.platform.http.routing import OPERATIONS, Routes


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """`own_secret` is the token of code in this very process, which nobody else can know."""

    resources: Resources
    own_secret: str | None = None


ROUTES: tuple[Routes, ...] = (
    schedule_routes.routes,
    bulk_routes.routes,
    guard_routes.trigger_routes,
    guard_routes.routes,
    forecast_routes.routes,
    draft_routes.routes,
    guard_routes.condition_routes,
    draft_routes.revision_routes,
    agenda_routes.routes,
    agenda_routes.overview_routes,
    history_routes.routes,
    run_routes.routes,
    report_routes.routes,
    report_routes.rerun_routes,
    approval_routes.run_routes,
    approval_routes.routes,
    report_routes.launch_routes,
    calendar_routes.routes,
    workflow_routes.routes,
    bundle_routes.routes,
    history_routes.feed_routes,
    webhook_routes.routes,
    secret_routes.routes,
    agent_routes.routes,
    tenant_routes.agent_routes,
    team_routes.routes,
    team_routes.assignment_routes,
    tenant_routes.token_routes,
    session_routes.routes,
    tenant_routes.routes,
    audit_routes.routes,
    cluster_routes.routes,
    probes.routes,
    cluster_routes.admin_routes,
    registrar_routes.routes,
    workspace_routes.routes,
    documentation.routes,
    interface.routes,
    schedule_routes.waterline,
    history_routes.waterline,
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
