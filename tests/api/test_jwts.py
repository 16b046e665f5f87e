"""Signed tokens of services, at the door: who they let in, where, and until when. Their keys: `unit/api/test_jwts`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from signing import SECRET, signed
from signing import claims as usual

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND, from_rfc3339
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

NOW = from_rfc3339("2026-03-01T00:00:00Z") // SECOND


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    knobs = {"jwt_secret": SECRET, "jwt_audience": "horarium", "jwt_issuer": "idp"}
    with service(at=NOW * SECOND, database=database_url, settings=knobs) as running:
        yield running


def claims(**changes: Any) -> dict[str, Any]:
    return usual(NOW, **{"iss": "idp", **changes})


def status(horarium: TestService, token: str, **headers: str) -> int:
    return horarium.http(token=token).get("/api/schedules", headers=headers).status_code


def test_history_names_the_subject(horarium: TestService) -> None:
    http = horarium.http(token=signed(claims()))
    http.post("/api/schedules", json={"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "x"})
    [created] = http.get("/api/schedules/s/history").json()["events"]
    assert created["payload"]["command_context"]["principal"] == "ci"
    assert http.get("/api/schedules/s").json()["owner"] == "ci"


def test_a_token_for_another_service_does_not_open_this_one(horarium: TestService) -> None:
    refusals = [
        claims(aud="payroll"),
        claims(aud=None),
        claims(iss="somebody"),
        claims(namespace=None),
        claims(iat=None),
        claims(exp=NOW + 86_401),
        claims(role="admin"),
    ]
    assert [status(horarium, signed(each)) for each in [claims(), *refusals]] == [200, *[401] * len(refusals)]


def test_a_token_that_is_not_signed_is_answered_and_not_a_fault(horarium: TestService) -> None:
    tokens = ["a.b.c", "..", "x" * 9_000 + ".y.z", signed(claims(), "another secret of thirty-two bytes!!")]
    assert [status(horarium, each) for each in tokens] == [401] * len(tokens)


def test_it_expires_by_our_clock(horarium: TestService) -> None:
    token = signed(claims())
    horarium.clock.advance(91)
    assert status(horarium, token) == 401


def test_a_tenant_s_token_is_good_at_home_only(horarium: TestService) -> None:
    horarium.http().post("/api/namespaces", json={"namespace": "tenant"})
    token = signed(claims(role="admin", namespace="tenant"))
    http = horarium.http(token=token)
    assert http.get("/api/schedules").json()["namespace"] == "tenant"
    assert status(horarium, token, **{"X-Namespace": "default"}) == 404
    assert http.get("/api/namespaces").status_code == 403
    ghost = signed(claims(namespace="ghost"))
    assert horarium.http(token=ghost).get("/api/schedules").json()["reason"] == "namespace_not_found"


def test_roles_hold(horarium: TestService) -> None:
    http = horarium.http(token=signed(claims(role="viewer")))
    assert http.post("/api/schedules", json={}).status_code == 403


def test_without_a_key_no_signed_token_is_taken(database_url: str) -> None:
    with service(database=database_url) as plain:
        assert status(plain, signed(claims())) == 401


def test_a_service_that_would_take_tokens_made_for_others_does_not_start(database_url: str) -> None:
    with (
        pytest.raises(InvalidDefinition, match="jwt_audience"),
        service(database=database_url, settings={"jwt_secret": SECRET}),
    ):
        pass


def test_an_admin_of_all_namespaces_comes_by_a_jwt_only_where_the_operator_says_so(database_url: str) -> None:
    knobs = {"jwt_secret": SECRET, "jwt_audience": "horarium", "jwt_everywhere": True}
    with service(at=NOW * SECOND, database=database_url, settings=knobs) as horarium:
        assert horarium.http(token=signed(claims(role="admin"))).get("/api/namespaces").status_code == 200
