"""Who may come in, and into which namespace."""

from __future__ import annotations

import pytest

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import TestService

NIGHTLY = {"schedule_id": "nightly", "cron_expressions": ["0 2 * * *"], "workflow_type": "report"}


def token(horarium: TestService, role: str, namespace: str = "default") -> str:
    admin = Caller("root", Role.ADMIN, namespace)
    return tenant_service.issue_token(
        horarium.resources, admin, name=role, role=role, subject=f"{role}@{namespace}"
    ).secret


def make_namespace(horarium: TestService, name: str) -> None:
    tenant_service.create_namespace(horarium.resources, horarium.caller, name)


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic aGk=", "Bearer wrong", "Bearer " + "x" * 9_000],
    ids=lambda h: str(h)[:12],
)
def test_without_a_good_token_nobody_comes_in(horarium: TestService, header: str | None) -> None:
    http = horarium.http(token=None)
    answer = http.get("/api/schedules", headers={} if header is None else {"Authorization": header})
    assert (answer.status_code, answer.json()["reason"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.both_databases
def test_a_revoked_token_is_of_no_use(horarium: TestService) -> None:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name="x", role="viewer")
    http = horarium.http(token=issued.secret)
    assert http.get("/api/schedules").status_code == 200
    [row] = tenant_service.list_tokens(horarium.resources, horarium.caller)
    from horarium.platform.ids import id_text

    tenant_service.revoke_token(horarium.resources, horarium.caller, id_text(row.token_id))
    assert http.get("/api/schedules").status_code == 401


@pytest.mark.parametrize(
    ("role", "read", "create", "pause"),
    [
        ("admin", 200, 201, 200),
        ("owner", 200, 201, 200),
        ("operator", 200, 403, 200),
        ("viewer", 200, 403, 403),
        ("agent", 403, 403, 403),
    ],
)
def test_each_role_may_do_its_part(horarium: TestService, role: str, read: int, create: int, pause: int) -> None:
    horarium.create(schedule_id="there", cron_expressions=["0 2 * * *"], workflow_type="report")
    http = horarium.http(token=token(horarium, role))
    assert http.get("/api/schedules/there").status_code == read
    assert http.post("/api/schedules", json=NIGHTLY).status_code == create
    assert http.post("/api/schedules/there/pause").status_code == pause


def test_a_tenant_sees_only_his_own(horarium: TestService) -> None:
    make_namespace(horarium, "tenant")
    horarium.create(NIGHTLY)
    http = horarium.http(token=token(horarium, "admin", "tenant"))
    assert http.get("/api/schedules/nightly").status_code == 404
    assert http.post("/api/schedules", json=NIGHTLY).json()["namespace"] == "tenant"
    other = http.get("/api/schedules/nightly", headers={"X-Namespace": "default"})
    assert (other.status_code, other.json()["reason"]) == (404, "namespace_not_found")


def test_the_keeper_of_the_house_may_go_everywhere(horarium: TestService) -> None:
    make_namespace(horarium, "tenant")
    for secret in (token(horarium, "admin"), None):
        http = horarium.http(namespace="tenant") if secret is None else horarium.http(token=secret, namespace="tenant")
        assert http.get("/api/schedules").json()["namespace"] == "tenant"


@pytest.mark.parametrize("name", ["ghost", "x" * 5_000, "a/b"], ids=["unknown", "long", "slash"])
def test_a_namespace_that_is_not_there_is_not_found(horarium: TestService, name: str) -> None:
    answer = horarium.http(namespace=name).get("/api/schedules")
    assert (answer.status_code, answer.json()["reason"]) == (404, "namespace_not_found")


def test_history_names_who_asked(horarium: TestService) -> None:
    http = horarium.http(token=token(horarium, "owner"))
    http.post("/api/schedules", json=NIGHTLY, headers={"X-Request-Id": "r-1"})
    [created] = http.get("/api/schedules/nightly/history").json()["events"]
    context = {"principal": "owner@default", "request_id": "r-1", "source": "api"}
    assert created["payload"]["command_context"] == context


@pytest.mark.both_databases
def test_the_probes_are_open(horarium: TestService) -> None:
    http = horarium.http(token=None)
    assert {path: http.get(path).status_code for path in ("/livez", "/healthz")} == {"/livez": 200, "/healthz": 200}
