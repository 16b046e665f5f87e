"""A service with one of everything in it, and a request for every route."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
from fastapi.routing import APIRoute
from starlette.routing import Route

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPEN, OPERATIONS
from horarium.platform.ids import parse_id
from horarium.platform.wire import Role
from horarium.serve.api import ROUTES
from horarium.testing import Accepted, TestService, service

SCHEDULE = "nightly-report"
GATED = "gated-report"
CALENDAR = "company-holidays"
WORKFLOW = "brief"
WORKSPACE_SCHEDULES = "/workspaces/{workspace_id}/schedules"
GUARDED = sorted(route for route, operation in OPERATIONS.items() if operation.needs is not OPEN)
# It answers for as long as its reader stays; asked for something wrong it ends at once.
STREAM = ("GET", "/api/events")
_SQLITE = "sqlite:///"
OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "X-Horarium-Source": "ui"}
"""What a browser says of a request that a page of ours makes."""


@dataclass(frozen=True)
class World:
    horarium: TestService
    names: Mapping[str, str]

    def token(self, role: str, namespace: str = "default") -> str:
        admin = Caller("root", Role.ADMIN, namespace)
        return tenant_service.issue_token(
            self.horarium.resources, admin, name=role, role=role, subject=f"{role}@{namespace}"
        ).secret

    def ask(self, http: httpx.Client, route: tuple[str, str], **headers: str) -> httpx.Response:
        method, path = route
        example = OPERATIONS[route].example
        params = {"at": "2026-03-01T23:00:00Z"} if path.endswith("/explain") else {}
        if path == "/api/session":
            headers = {**OUR_PAGE, **headers}
        if route == STREAM:
            headers = {"Last-Event-ID": "no cursor", **headers}
        if path == f"{WORKSPACE_SCHEDULES}/health":
            headers = {"X-Workspace-ID": "agent@default", **headers}
        sent = dict(example.body or {})
        if path.endswith("/report") and "authorization" in http.headers:
            sent["report_token"] = self.horarium.resources.tokens.make(parse_id(self.names["run_id"], "run_id"), 0)
        body: dict[str, Any] = {} if example.body is None else {"json": sent}
        return http.request(method, path.format(**self.names), params=params, headers=headers, **body)


@contextmanager
def world(database: str, **settings: Any) -> Iterator[World]:
    """On a database that holds nothing yet; a SQLite file is replaced by a copy of one that was furnished before."""
    if settings or not database.startswith(_SQLITE):
        with _house(database, settings) as horarium:
            yield World(horarium, _furnish(horarium))
        return
    content, names = _furnished()
    Path(database.removeprefix(_SQLITE)).write_bytes(content)
    with _house(database) as horarium:
        yield World(horarium, names)


@lru_cache
def _furnished() -> tuple[bytes, Mapping[str, str]]:
    """The file, and the names of what is in it. To furnish one takes seven times as long as to open it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "furnished.db")
        with _house(f"{_SQLITE}{path}") as horarium:
            names = _furnish(horarium)
        return path.read_bytes(), names


@contextmanager
def _house(database: str, settings: Mapping[str, Any] | None = None) -> Iterator[TestService]:
    queued = Accepted(reference="reports", queued=True)
    with service(at="2026-03-01T00:00:00Z", answer=queued, database=database, settings=settings) as horarium:
        yield horarium


def _furnish(horarium: TestService) -> dict[str, str]:
    http = horarium.http()
    stored = {**(OPERATIONS["PUT", "/api/workflows/{workflow_id}"].example.body or {}), "triggers": []}
    assert http.put(f"/api/workflows/{WORKFLOW}", json=stored).status_code == 201
    made = ("schedules", "calendars", "namespaces", "agents", "teams", "assignments")
    for path in (f"/api/{each}" for each in made):
        assert http.post(path, json=OPERATIONS["POST", path].example.body).status_code == 201
    # Nobody listens at the discard port of this machine, and nobody far away is called.
    told = {
        **(OPERATIONS["POST", "/api/subscriptions"].example.body or {}),
        "name": "told",
        "url": "http://127.0.0.1:9/",
    }
    assert http.post("/api/subscriptions", json=told).status_code == 201
    assert http.put("/api/agents/writer", json={"url": told["url"]}).status_code == 200
    kept = OPERATIONS["PUT", "/api/secrets/{secret_name}"].example.body
    assert http.put("/api/secrets/erp-token", json=kept).status_code == 201
    waits = {"requires_approval": True, "allow_requester": True}
    asks = {**(OPERATIONS["POST", "/api/schedules"].example.body or {}), "schedule_id": GATED}
    assert http.post("/api/schedules", json={**asks, "approval_policy": waits}).status_code == 201
    # Not by whoever wrote the schedule, and of one that asks nothing.
    operator = tenant_service.issue_token(
        horarium.resources, Caller("root", Role.ADMIN), name="yes", role="operator"
    ).secret
    yes = {"schedule_id": SCHEDULE, "gates": ["publish"]}
    standing = horarium.http(token=operator).post("/api/approvals/standing", json=yes).json()
    issued = http.post("/api/tokens", json={"name": "ci", "role": "viewer"}).json()
    run_id = http.post(f"/api/schedules/{SCHEDULE}/trigger").json()["run_id"]
    asked_run(http)
    horarium.settle()
    path = "/workspaces/writer/schedules"
    prompt = {**(OPERATIONS["POST", WORKSPACE_SCHEDULES].example.body or {}), "name": "made before"}
    names = {
        "workspace_id": "writer",
        "workspace_schedule_id": http.post(path, json=prompt).json()["id"],
        "schedule_id": SCHEDULE,
        "run_id": run_id,
        "name": CALENDAR,
        "token_id": issued["token_id"],
        "namespace": "default",
        "queue": "reports",
        "subscription_id": "told",
        "secret_name": "erp-token",
        "workflow_id": WORKFLOW,
        "agent_id": "writer",
        "team_id": "desk",
        "assignment_id": "daily-brief-by-writer",
        "approval_id": http.get("/api/approvals").json()["approvals"][0]["approval_id"],
        "standing_id": standing["standing_id"],
    }
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    return names


def routes() -> dict[tuple[str, str], Any]:
    """Every route of the application with its endpoint, hidden ones too."""
    found: dict[tuple[str, str], Any] = {}
    for declared in ROUTES:
        for route in declared.router.routes:
            assert isinstance(route, APIRoute)
            for method in route.methods or ():
                assert (method, route.path_format) not in found, f"{method} {route.path_format} appears twice"
                found[method, route.path_format] = route.endpoint
    return found


def own_routes(horarium: TestService) -> set[tuple[str, str]]:
    """Those that the framework adds by itself."""
    plain = (
        route for route in horarium.parts.api.routes if isinstance(route, Route) and not isinstance(route, APIRoute)
    )
    return {(method, route.path) for route in plain for method in route.methods or () if method != "HEAD"}


def asked_run(http: httpx.Client) -> str:
    """One that waits for a yes."""
    run_id: str = http.post(f"/api/schedules/{GATED}/trigger", json={"overlap_policy": "allow_all"}).json()["run_id"]
    return run_id


def new_run(horarium: TestService, http: httpx.Client) -> str:
    http.post(f"/api/schedules/{SCHEDULE}/trigger", json={"overlap_policy": "allow_all"})
    horarium.settle()
    return horarium.runs()[-1].run_id
