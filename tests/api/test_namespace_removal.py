"""A namespace is taken away: never by mistake, with all its rows, and nothing of anybody else's."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.features.bundles import service as bundle_service
from horarium.features.bundles.document import read_bundle
from horarium.features.calendars import service as calendar_service
from horarium.features.schedules import service as schedule_service
from horarium.features.tenants import removal_rows
from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.database import run_archive
from horarium.platform.database.tables import metadata
from horarium.platform.errors import NamespaceNotFound
from horarium.platform.wire import Role
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

DOCUMENT = {
    "spec": {"cron_expressions": ["0 * * * *"]},
    "action": {"workflow_type": "w"},
    "overlap_policy": "allow_all",
}


def tenant(http: httpx.Client, horarium: TestService, name: str = "tenant") -> tuple[httpx.Client, str]:
    """A client of a new namespace with one of everything in it, and the secret of a token there."""
    assert http.post("/api/namespaces", json={"namespace": name}).status_code == 201
    inside = horarium.http(namespace=name)
    secret = inside.post("/api/tokens", json={"name": "ci", "role": "owner"}).json()["secret"]
    inside.post("/api/calendars", json={"name": "days", "kind": "skip_dates", "dates": ["2026-12-24"]})
    for number in range(3):
        document = {**DOCUMENT, "schedule_id": f"s{number}", "concurrency_key": "k", "concurrency_limit": 9}
        assert inside.post("/api/schedules", json=document).status_code == 201
    return inside, secret


def rows(horarium: TestService, name: str) -> dict[str, int]:
    """How many rows each table has of a namespace, but for the audit, which stays."""

    def count(connection: Any) -> dict[str, int]:
        found: Counter[str] = Counter()
        archive = run_archive.tables(connection)[1:]
        for table in (*metadata.sorted_tables, *archive):
            if "namespace" in table.c and not table.name.startswith("audit"):
                of = sa.select(sa.func.count()).select_from(table).where(table.c.namespace == name)
                found["runs" if table in archive else table.name] += connection.execute(of).scalar_one()
        return {table: number for table, number in found.items() if number}

    return horarium.resources.database.read(count)


def everything(horarium: TestService) -> dict[str, int]:
    def count(connection: Any) -> dict[str, int]:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
            if table.name not in ("leases", "audit", "audit_heads")
        }

    return horarium.resources.database.read(count)


def test_what_is_live_goes_only_by_force(http: httpx.Client, horarium: TestService) -> None:
    before = everything(horarium)
    inside, secret = tenant(http, horarium)
    horarium.advance(hours=1)
    planned = http.delete("/api/namespaces/tenant", params={"dry_run": "true"}).json()
    assert planned == {"namespace": "tenant", "outcome": "planned", "schedules": 3, "open_runs": 3}
    refused = http.delete("/api/namespaces/tenant")
    assert (refused.status_code, refused.json()["reason"]) == (409, "namespace_in_use")
    assert "3 live schedules and 3 open runs" in refused.json()["message"]
    assert horarium.http(token=secret).get("/api/schedules").status_code == 200, "nothing has changed"
    done = http.delete("/api/namespaces/tenant", params={"force": "true"})
    assert done.json() == {**planned, "outcome": "deleted"}
    assert horarium.http(token=secret).get("/api/schedules").status_code == 401
    assert inside.get("/api/schedules").json()["reason"] == "namespace_not_found"
    assert http.delete("/api/namespaces/tenant").status_code == 404
    assert (rows(horarium, "tenant"), everything(horarium)) == ({}, before), "nothing is left of it, in no table"
    horarium.advance(hours=2)
    assert everything(horarium)["runs"] == 0
    tenant(http, horarium)  # the name is free again, and begins with nothing
    assert horarium.http(namespace="tenant").get("/api/runs").json()["runs"] == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_schedules_without_runs_keep_a_namespace_and_so_do_runs_without_schedules(
    http: httpx.Client, horarium: TestService
) -> None:
    inside, _ = tenant(http, horarium)
    refused = http.delete("/api/namespaces/tenant")
    assert (refused.status_code, refused.json()["reason"]) == (409, "namespace_in_use")
    assert "3 live schedules and 0 open runs" in refused.json()["message"]
    horarium.advance(hours=1)
    for number in range(3):
        assert inside.delete(f"/api/schedules/s{number}").status_code == 200
    refused = http.delete("/api/namespaces/tenant")
    assert (refused.status_code, refused.json()["reason"]) == (409, "namespace_in_use")
    assert "0 live schedules and 3 open runs" in refused.json()["message"]


def test_workflows_agents_and_questions_go_with_it(http: httpx.Client, horarium: TestService) -> None:
    before = everything(horarium)
    inside, _ = tenant(http, horarium)
    node = {"id": "send", "action": {"kind": "pull", "workflow_type": "w", "queue": "q"}, "gates": ["publish"]}
    for path, body in (
        ("agents/writer", {"token": "t"}),
        ("teams/desk", {"members": ["writer"]}),
        ("workflows/brief", {"nodes": [node], "approval_policy": {"gates": ["publish"], "approvals_required": 2}}),
        ("assignments/given", {"workflow_id": "brief", "assignee_id": "writer"}),
    ):
        assert inside.put(f"/api/{path}", json=body).status_code == 201
    assert inside.post("/api/workflows/brief/runs", json={}).status_code == 201
    horarium.settle()
    other = horarium.http(token=inside.post("/api/tokens", json={"name": "o", "role": "operator"}).json()["secret"])
    assert other.post("/api/approvals/standing", json={"schedule_id": "s0", "gates": ["spend"]}).status_code == 201
    [question] = inside.get("/api/approvals").json()["approvals"]
    assert other.post(f"/api/approvals/{question['approval_id']}/decision", json={"decision": "approve"}).is_success
    there = everything(horarium)
    assert {
        name for name in ("approvals", "approval_votes", "standing_approvals", "workflows") if not there[name]
    } == set()
    gone = http.delete("/api/namespaces/tenant", params={"force": "true"})
    assert gone.json().get("outcome") == "deleted", gone.text
    assert (rows(horarium, "tenant"), everything(horarium)) == ({}, before)


def test_a_large_one_goes_by_itself_and_leaves_the_others_alone(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_service, "_MOST_STEPS", 1)
    tenant(http, horarium, "neighbour")
    _, secret = tenant(http, horarium)
    horarium.advance(hours=1)
    theirs = rows(horarium, "neighbour")
    assert http.delete("/api/namespaces/tenant", params={"force": "true"}).json()["outcome"] == "deleting"
    assert horarium.http(token=secret).get("/api/schedules").status_code == 401
    again = http.post("/api/namespaces", json={"namespace": "tenant"})
    assert (again.status_code, again.json()["reason"]) == (409, "namespace_being_deleted")
    assert "tenant" not in [each["namespace"] for each in http.get("/api/namespaces").json()["namespaces"]]
    horarium.advance(hours=1)
    assert rows(horarium, "tenant")["runs"] == 3, "nothing of it fires any more"
    while horarium.parts.engine.retention.step().more:
        pass
    assert rows(horarium, "tenant") == {}
    assert http.post("/api/namespaces", json={"namespace": "tenant"}).status_code == 201
    kept = rows(horarium, "neighbour")
    assert {name: kept[name] for name in ("schedules", "tokens", "calendars")} == {
        name: theirs[name] for name in ("schedules", "tokens", "calendars")
    }
    assert kept["runs"] > theirs["runs"], "the neighbour's clock goes on"


def test_some_stay_and_only_the_house_may(http: httpx.Client, horarium: TestService) -> None:
    assert http.delete("/api/namespaces/default", params={"force": "true"}).json()["reason"] == "namespace_protected"
    assert http.delete(f"/api/namespaces/{'x' * 300}").status_code == 404
    inside, _ = tenant(http, horarium)
    secret = inside.post("/api/tokens", json={"name": "root", "role": "admin"}).json()["secret"]
    theirs = horarium.http(token=secret)
    assert theirs.delete("/api/namespaces/tenant", params={"force": "true"}).status_code == 403
    assert theirs.get("/api/schedules").status_code == 200


def test_nothing_is_born_where_another_process_has_deleted_the_namespace(
    http: httpx.Client, horarium: TestService
) -> None:
    """A request that was let in before the deletion, and writes after it: its body may have taken minutes to come."""
    tenant(http, horarium)
    resources, late = horarium.resources, Caller("ci", Role.ADMIN, "tenant")
    document = {**DOCUMENT, "schedule_id": "late"}
    days = {"name": "late", "kind": "skip_dates", "dates": ["2026-12-24"]}
    resources.database.write(
        lambda connection: removal_rows.mark_deleted(connection, "tenant", now=resources.clock.now())
    )
    before = rows(horarium, "tenant")
    for act in (
        lambda: schedule_service.create(resources, late, document),
        lambda: bundle_service.apply_bundle(resources, late, read_bundle("b", {"schedules": [document]})),
        lambda: calendar_service.create(resources, late, days),
        lambda: tenant_service.issue_token(resources, late, name="late", role="viewer"),
    ):
        with pytest.raises(NamespaceNotFound):
            act()
    assert rows(horarium, "tenant") == before
