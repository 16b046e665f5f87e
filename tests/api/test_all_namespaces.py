"""Lists of the whole installation, for its admins alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from run_rows import add_run

from horarium.platform.http.requests import ALL_NAMESPACES
from horarium.platform.wire import Role
from horarium.testing import TestService

LISTS = {
    "/api/health/schedules": "schedules",
    "/api/runs": "runs",
    "/api/approvals": "approvals",
    "/api/subscriptions": "subscriptions",
}
TENANTS = ("default", "a", "b")
HOOK = {
    "kinds": ["run_finished"],
    "url": "https://ops.example.com/",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}


@pytest.fixture
def tenants(horarium: TestService) -> dict[str, httpx.Client]:
    """Three namespaces, each with the same schedules, a run, an approval request and a subscription."""
    for name in TENANTS[1:]:
        assert horarium.http().post("/api/namespaces", json={"namespace": name}).status_code == 201
    doors = {name: horarium.http(namespace=name) for name in TENANTS}
    for http in doors.values():
        for schedule_id, asks in (("plain", False), ("gated", True)):
            body = {
                "schedule_id": schedule_id, "cron_expressions": ["0 * * * *"], "workflow_type": "w",
                "approval_policy": {"requires_approval": asks, "allow_requester": True},
            }  # fmt: skip
            assert http.post("/api/schedules", json=body).status_code == 201
            assert http.post(f"/api/schedules/{schedule_id}/trigger").is_success
        assert http.post("/api/subscriptions", json={**HOOK, "name": "hook"}).status_code == 201
    return doors


def everything(http: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """The rows of all pages of two."""
    rows: list[dict[str, Any]] = []
    token = None
    while True:
        asked = {"namespace": ALL_NAMESPACES, "page_size": 2, **query, **({"next_page_token": token} if token else {})}
        answer = http.get(path, params=asked)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page[LISTS[path]]) <= 2
        rows += page[LISTS[path]]
        token = page["next_page_token"]
        if token is None:
            return rows


@pytest.mark.both_databases
def test_an_admin_of_the_installation_lists_all_namespaces_page_by_page(tenants: dict[str, httpx.Client]) -> None:
    for path, member in LISTS.items():
        own = {name: http.get(path, params={"page_size": 200}).json()[member] for name, http in tenants.items()}
        rows = everything(tenants["default"], path)
        assert len(rows) == sum(map(len, own.values())) > 0, path
        for name, expected in own.items():
            assert [row for row in rows if row["namespace"] == name] == expected, path
        assert everything(tenants["a"], path) == rows, "the namespace of the request changes nothing"


@pytest.mark.both_databases
def test_filters_hold_over_all_namespaces(tenants: dict[str, httpx.Client], horarium: TestService) -> None:
    http = tenants["default"]
    for name in TENANTS[1:]:
        add_run(horarium.resources.database, namespace=name, state="launch_failed", finished_at=1)
    failed = everything(http, "/api/runs", state="unsuccessful")
    assert sorted(row["namespace"] for row in failed) == ["a", "b"]
    assert len(everything(http, "/api/approvals", mine=True)) == len(TENANTS)
    unwell = http.get("/api/health/schedules", params={"namespace": ALL_NAMESPACES, "unwell": True}).json()["schedules"]
    assert sorted((row["namespace"], row["schedule_id"]) for row in unwell) == [
        (name, "gated") for name in sorted(TENANTS)
    ]


def test_the_overview_of_all_namespaces_is_the_sum_of_theirs(
    tenants: dict[str, httpx.Client], horarium: TestService
) -> None:
    horarium.advance(hours=3)
    now = horarium.clock.now()
    add_run(horarium.resources.database, namespace="b", state="failed", finished_at=now)
    own = [http.get("/api/overview").json() for http in tenants.values()]
    found = tenants["default"].get("/api/overview", params={"namespace": ALL_NAMESPACES}).json()
    assert found["namespace"] == ALL_NAMESPACES
    for name, value in found.items():
        if isinstance(value, int):
            assert value == sum(each[name] for each in own), name
    assert found["failed_24h"] > 1
    assert found["waiting_for_approval"] >= len(TENANTS)
    for status, count in found["schedules"].items():
        assert count == sum(each["schedules"][status] for each in own), status


def test_everybody_else_is_refused_and_the_refusal_is_in_the_audit_of_their_namespace(
    tenants: dict[str, httpx.Client], horarium: TestService
) -> None:
    paths = (*LISTS, "/api/overview")
    for namespace in ("default", "a"):
        for role in Role:
            if (namespace, role) == ("default", Role.ADMIN):
                continue
            asked = {"name": f"t-{role}", "role": role, "subject": f"{role}-of-{namespace}"}
            token = tenants[namespace].post("/api/tokens", json=asked).json()["secret"]
            http = horarium.http(token=token, namespace=namespace)
            for path in paths:
                answer = http.get(path, params={"namespace": ALL_NAMESPACES})
                assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden"), (namespace, role, path)
    horarium.parts.api.state.refusals.close()
    for namespace in ("default", "a"):
        entries = tenants["default"].get("/api/audit", params={"namespace": namespace, "page_size": 200}).json()
        refused = {each["principal"] for each in entries["entries"] if each["act"] == "permission_refused"}
        assert f"{Role.OPERATOR}-of-{namespace}" in refused


@pytest.mark.both_databases
def test_a_list_of_all_namespaces_leaves_no_entry_in_the_audit(tenants: dict[str, httpx.Client]) -> None:
    before = tenants["default"].get("/api/audit").json()["head"]
    for path in (*LISTS, "/api/overview"):
        assert tenants["default"].get(path, params={"namespace": ALL_NAMESPACES}).status_code == 200
    assert tenants["default"].get("/api/audit").json()["head"] == before


def test_another_name_and_a_schedule_of_several_namespaces_are_refused_with_the_field(
    tenants: dict[str, httpx.Client],
) -> None:
    for path in LISTS:
        answer = tenants["default"].get(path, params={"namespace": "a"})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, ["namespace"])
        assert tenants["a"].get(path, params={"namespace": "a"}).status_code == 200
    for path in ("/api/runs", "/api/approvals"):
        answer = tenants["default"].get(path, params={"namespace": ALL_NAMESPACES, "schedule_id": "plain"})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, ["schedule_id"])
    answer = tenants["default"].get("/api/subscriptions", params={"next_page_token": "nonsense"})
    assert answer.status_code == 422


def test_a_namespace_that_is_removed_is_in_no_list(tenants: dict[str, httpx.Client]) -> None:
    assert tenants["default"].delete("/api/namespaces/b", params={"force": "true"}).is_success
    for path in LISTS:
        assert {row["namespace"] for row in everything(tenants["default"], path)} == {"default", "a"}, path
