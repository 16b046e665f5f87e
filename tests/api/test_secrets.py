"""Secrets over HTTP: what goes in comes out of no door, and nobody else's can be touched."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.features.tenants import service as tenant_service
from horarium.platform.caller import Caller
from horarium.platform.database.tables import metadata
from horarium.platform.wire import Role
from horarium.testing import TestService

VALUE = "Bearer open-sesame"


def put(http: httpx.Client, name: str = "erp", **body: Any) -> httpx.Response:
    return http.put(f"/api/secrets/{name}", json={"value": VALUE, **body})


def caller(horarium: TestService, role: str, namespace: str = "default") -> httpx.Client:
    admin = Caller("root", Role.ADMIN, namespace)
    return horarium.http(
        token=tenant_service.issue_token(horarium.resources, admin, name=role, role=role, subject=role).secret
    )


def everything(horarium: TestService) -> str:
    """A dump of all tables."""
    return horarium.resources.database.read(
        lambda c: "\n".join(repr(c.execute(sa.select(table)).all()) for table in metadata.sorted_tables)
    )


@pytest.mark.both_databases
def test_a_secret_is_set_replaced_listed_and_deleted_without_being_shown(
    horarium: TestService, http: httpx.Client
) -> None:
    made = put(http, hosts=["ERP.example.com"])
    assert made.status_code == 201
    assert made.json() | {"created_at": 0, "updated_at": 0} == {
        "name": "erp", "hosts": ["erp.example.com"], "generated": False, "principal": "admin", "version": 1,
        "created_at": 0, "updated_at": 0,
    }  # fmt: skip
    again = http.put("/api/secrets/erp", json={"value": "another open-sesame"})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    listed = http.get("/api/secrets")
    assert [each["name"] for each in listed.json()["secrets"]] == ["erp"]
    gone = http.delete("/api/secrets/erp")
    assert gone.json() == {"name": "erp", "outcome": "deleted"}
    assert http.delete("/api/secrets/erp").json()["reason"] == "secret_not_found"
    assert not any("sesame" in answer.text for answer in (made, again, listed, gone))
    assert "sesame" not in everything(horarium)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_hosts_stay_and_nobody_changes_them_without_the_value(http: httpx.Client) -> None:
    assert put(http).json()["hosts"] is None
    assert put(http, hosts=["a.example"]).json()["hosts"] == ["a.example"]
    assert put(http).json()["hosts"] == ["a.example"]
    refused = http.put("/api/secrets/erp", json={"hosts": ["evil.example"]})
    assert (refused.status_code, refused.json()["errors"]) == (422, {"value": ["is required"]})
    assert put(http, hosts=["*"]).json()["hosts"] is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_repeated_request_is_one_and_leaves_no_trace_to_try_values_on(
    horarium: TestService, http: httpx.Client
) -> None:
    """A thief of the database guesses: a plain hash of the request would say when the guess is right."""
    key = {"Idempotency-Key": "once"}
    body = {"value": "0000"}
    first = http.put("/api/secrets/pin", json=body, headers=key)
    assert http.put("/api/secrets/pin", json=body, headers=key).json() == first.json()
    assert http.put("/api/secrets/pin", json={"value": "1111"}, headers=key).status_code == 422
    asked = json.dumps(["PUT", "/api/secrets/pin", {"secret_name": "pin", "document": body}], sort_keys=True)
    guessed = (sha256(asked.encode()).hexdigest(), hmac.new(b"", asked.encode(), sha256).hexdigest())
    assert not any(guess in everything(horarium) for guess in guessed)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_who_may_set_and_who_may_list(horarium: TestService, http: httpx.Client) -> None:
    put(http)
    may = {
        role: (
            caller(horarium, role).get("/api/secrets").status_code,
            put(caller(horarium, role)).status_code,
            caller(horarium, role).delete("/api/secrets/other").status_code,
        )
        for role in Role
    }
    assert may == {
        "admin": (200, 200, 404),
        "owner": (200, 200, 404),
        "operator": (200, 403, 403),
        "viewer": (200, 403, 403),
        "agent": (403, 403, 403),
    }


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_another_tenant_neither_sees_nor_touches_it(horarium: TestService, http: httpx.Client) -> None:
    put(http)
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    theirs = caller(horarium, "admin", "other")
    assert theirs.get("/api/secrets").json()["secrets"] == []
    assert theirs.delete("/api/secrets/erp").json()["reason"] == "secret_not_found"
    assert theirs.put("/api/secrets/erp", json={"value": "theirs"}).status_code == 201
    assert theirs.delete("/api/secrets/erp", headers={"X-Namespace": "default"}).status_code == 404
    [mine] = http.get("/api/secrets").json()["secrets"]
    assert (mine["name"], mine["version"]) == ("erp", 1)


def test_a_secret_that_schedules_name_is_not_deleted_by_mistake(horarium: TestService, http: httpx.Client) -> None:
    for name in ("erp", "erp_2", "erpx2"):
        put(http, name)
    headers = {"uses": {"$secret": "erp_2"}, "quotes": '{"$secret":"erp_2"}', "other": {"$secret": "erpx2"}}
    for schedule_id, value in headers.items():
        said = {"headers": {"X-Key": value}, "input": {"note": '"$secret":"erp_2"'}}
        call = {"schedule_id": schedule_id, "cron_expressions": ["0 * * * *"]}
        made = http.post("/api/schedules", json={**call, "action": {"url": "https://a.example/", **said}})
        assert made.status_code == 201, made.text
    refused = http.delete("/api/secrets/erp_2")
    assert (refused.status_code, refused.json()["reason"]) == (409, "secret_in_use")
    assert refused.json()["schedules"] == ["uses"]
    assert http.delete("/api/secrets/erp").status_code == 200
    assert http.delete("/api/secrets/erp_2", params={"force": True}).status_code == 200
    http.delete("/api/schedules/other")
    assert http.delete("/api/secrets/erpx2").status_code == 200


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_namespace_takes_its_secrets_along(horarium: TestService, http: httpx.Client) -> None:
    tenant_service.create_namespace(horarium.resources, horarium.caller, "going")
    put(caller(horarium, "admin", "going"))
    assert http.delete("/api/namespaces/going").json()["outcome"] == "deleted"
    rows = horarium.resources.database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM secrets").scalar_one())
    assert rows == 0


# What is sent, and what the refusal names.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("erp", {}, "value"),
    ("erp", {"value": ""}, "value"),
    ("erp", {"value": ["sesame"]}, "value"),
    ("erp", {"value": "sesame" * 20_000}, "value"),
    ("erp", {"value": "é" * 40_000 + "sesame"}, "value"),
    ("erp", {"value": "sesame\x00"}, "value"),
    ("erp", {"value": "sesame\ud800"}, "surrogate"),
    ("erp", {"value": {"sesame": 1}}, "value"),
    ("erp", {"value": "sesame", "hosts": ["https://a.example/"]}, "hosts.0"),
    ("erp", {"value": "sesame", "hosts": "a.example"}, "hosts"),
    ("erp", {"value": "sesame", "hosts": []}, "hosts"),
    ("erp", {"value": "sesame", "owner": "x"}, "owner"),
    ("a b", {"value": "sesame"}, "name"),
    ("x" * 200, {"value": "sesame"}, "name"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_cannot_be_kept_is_refused_without_repeating_it(http: httpx.Client) -> None:
    for name, body, named in REFUSED:
        raw = json.dumps(body).encode()
        answer = http.put(f"/api/secrets/{name}", content=raw, headers={"Content-Type": "application/json"})
        assert (answer.status_code in (400, 422), named in answer.text, "sesame" in answer.text) == (True, True, False)
    assert http.get("/api/secrets").json()["secrets"] == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_list_has_pages_and_a_full_namespace_takes_no_more(horarium: TestService, http: httpx.Client) -> None:
    for name in "cab":
        put(http, name)
    first = http.get("/api/secrets", params={"page_size": 2}).json()
    assert [each["name"] for each in first["secrets"]] == ["a", "b"]
    rest = http.get("/api/secrets", params={"page_size": 2, "next_page_token": first["next_page_token"]}).json()
    assert ([each["name"] for each in rest["secrets"]], rest["next_page_token"]) == (["c"], None)
    assert http.get("/api/secrets", params={"next_page_token": "' OR 1=1"}).status_code == 422
    client = horarium.client()
    assert [each.name for each in client.iter_secrets(page_size=1)] == ["a", "b", "c"]
    most = horarium.resources.settings.secrets_per_namespace
    row = {"generated": False, "version": 1, "created_at": 0, "updated_at": 0, "sealed": "x", "namespace": "default"}
    rows = [{**row, "name": f"s{number}"} for number in range(most - 3)]
    horarium.resources.database.write(lambda c: c.execute(sa.insert(metadata.tables["secrets"]), rows))
    refused = put(http)
    assert (refused.status_code, f"{most} secrets" in refused.json()["message"]) == (409, True)
    assert put(http, "s7").status_code == 200
