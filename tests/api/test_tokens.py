"""Tokens and namespaces over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.platform.ids import id_text, new_id
from horarium.testing import TestService


def issue(http: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = http.post("/api/tokens", json={"name": "ci", "role": "operator", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_token_is_shown_once(http: httpx.Client, horarium: TestService) -> None:
    made = issue(http, subject="pipeline", expires_at="2026-04-01T00:00:00Z")
    secret = made.pop("secret")
    assert len(secret.removeprefix("hor_")) == 43  # 32 bytes
    assert horarium.http(token=secret).get("/api/schedules").status_code == 200
    listed = http.get("/api/tokens")
    assert secret not in listed.text
    assert listed.json()["tokens"] == [{**made, "last_used_at": "2026-03-01T00:00:00Z"}]
    assert (made["namespace"], made["role"], made["subject"]) == ("default", "operator", "pipeline")


def test_a_repeated_request_makes_another_token(http: httpx.Client) -> None:
    """No secret is kept, so no answer can be given twice."""
    first, second = (
        http.post("/api/tokens", json={"name": "x", "role": "viewer"}, headers={"Idempotency-Key": "k"}).json()
        for _ in range(2)
    )
    assert first["secret"] != second["secret"]


def test_a_token_that_was_taken_back_opens_nothing(http: httpx.Client, horarium: TestService) -> None:
    made = issue(http)
    assert http.delete(f"/api/tokens/{made['token_id'].lower()}").json()["outcome"] == "revoked"
    assert http.delete(f"/api/tokens/{made['token_id']}").json()["outcome"] == "unchanged"
    assert horarium.http(token=made["secret"]).get("/api/schedules").status_code == 401
    assert http.get("/api/tokens").json()["tokens"][0]["revoked_at"] == "2026-03-01T00:00:00Z"


def test_a_token_that_has_expired_opens_nothing(http: httpx.Client, horarium: TestService) -> None:
    client = horarium.http(token=issue(http, expires_at="2026-03-01T00:01:00Z")["secret"])
    assert client.get("/api/schedules").status_code == 200
    horarium.clock.advance(60)
    assert client.get("/api/schedules").status_code == 401


def test_a_rotated_token_has_two_secrets_for_a_while(http: httpx.Client, horarium: TestService) -> None:
    made = issue(http, subject="pipeline")

    def open_doors(*issued: dict[str, Any]) -> list[bool]:
        secrets = [each["secret"] for each in issued]
        return [horarium.http(token=each).get("/api/schedules").status_code == 200 for each in secrets]

    def rotate(**said: Any) -> dict[str, Any]:
        answer = http.post(f"/api/tokens/{made['token_id']}/rotate", json=said)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    second = rotate()
    assert (second["token_id"], second["role"], second["subject"]) == (made["token_id"], "operator", "pipeline")
    assert second["previous_until"] == "2026-03-02T00:00:00Z", "a day, unless somebody says otherwise"
    assert open_doors(made, second) == [True, True]
    horarium.clock.advance(86_400)
    assert open_doors(made, second) == [False, True]
    third = rotate(overlap_seconds=0)
    assert open_doors(second, third) == [False, True]
    fourth = rotate(overlap_seconds=60)
    fifth = rotate(overlap_seconds=60)
    assert open_doors(third, fourth, fifth) == [False, True, True]
    listed = http.get("/api/tokens")
    assert all(each["secret"] not in listed.text for each in (made, fourth, fifth))
    http.delete(f"/api/tokens/{made['token_id']}")
    assert open_doors(fourth, fifth) == [False, False], "taken back means both"
    gone = http.post(f"/api/tokens/{made['token_id']}/rotate")
    assert (gone.status_code, gone.json()["reason"]) == (409, "token_not_live")


def test_a_rotation_is_bounded_and_stays_at_home(http: httpx.Client, horarium: TestService) -> None:
    made = issue(http)
    path = f"/api/tokens/{made['token_id']}/rotate"
    assert http.post(path, json={"overlap_seconds": 2_592_001}).status_code == 422
    http.post("/api/namespaces", json={"namespace": "other"})
    assert horarium.http(namespace="other").post(path).json()["reason"] == "token_not_found"
    assert horarium.http(token=made["secret"]).post(path).status_code == 403


@pytest.mark.parametrize("name", ["ghost", id_text(new_id()), "x" * 500], ids=["no-id", "unknown", "long"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_unknown_token_is_not_found(http: httpx.Client, name: str) -> None:
    assert http.delete(f"/api/tokens/{name}").json()["reason"] == "token_not_found"


BAD_REQUESTS = [
    ({"role": "viewer"}, "name"),
    ({"name": "x"}, "role"),
    ({"name": "x", "role": "emperor"}, "role"),
    ({"name": "", "role": "viewer"}, "name"),
    ({"name": "x" * 300, "role": "viewer"}, "name"),
    ({"name": "x", "role": "viewer", "expires_at": "soon"}, "expires_at"),
    ({"name": "x", "role": "viewer", "expires_at": "2026-02-01T00:00:00Z"}, "expires_at"),
    ({"name": "x", "role": "viewer", "secret": "mine"}, "secret"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_bad_request_names_the_field(http: httpx.Client) -> None:
    for body, field in BAD_REQUESTS:
        answer = http.post("/api/tokens", json=body)
        assert (answer.status_code, list(answer.json()["errors"])) == (422, [field]), (body, field)


def test_use_is_noted_now_and_then(http: httpx.Client, horarium: TestService) -> None:
    client = horarium.http(token=issue(http)["secret"])
    noted = []
    for minutes in (0, 5, 6):
        horarium.clock.advance(minutes * 60)
        client.get("/api/schedules")
        noted.append(http.get("/api/tokens").json()["tokens"][0]["last_used_at"])
    assert noted == ["2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-01T00:11:00Z"]


# ── namespaces ───────────────────────────────────────────────────────────────────────────────────────


def test_a_namespace_must_be_made_before_it_is_used(http: httpx.Client, horarium: TestService) -> None:
    inside = horarium.http(namespace="tenant")
    assert inside.get("/api/schedules").json()["reason"] == "namespace_not_found"
    made = http.post("/api/namespaces", json={"namespace": "tenant", "description": "ours"})
    assert (made.status_code, made.json()["description"]) == (201, "ours")
    assert inside.get("/api/schedules").json()["schedules"] == []
    assert http.get("/api/namespaces/tenant").json().items() >= made.json().items()
    assert [each["namespace"] for each in http.get("/api/namespaces").json()["namespaces"]] == ["default", "tenant"]
    assert http.get("/api/namespaces/ghost").json()["reason"] == "namespace_not_found"


@pytest.mark.parametrize("name", ["default", "a b", "", "x" * 200, None, 5], ids=str)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_bad_or_taken_name_is_refused(http: httpx.Client, name: object) -> None:
    status = http.post("/api/namespaces", json={"namespace": name}).status_code
    assert status == (409 if name == "default" else 422)


def test_the_same_id_lives_in_two_namespaces(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/namespaces", json={"namespace": "tenant"})
    body = {"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "x"}
    inside = horarium.http(namespace="tenant")
    assert [client.post("/api/schedules", json=body).status_code for client in (http, inside)] == [201, 201]
    inside.delete("/api/schedules/s")
    assert http.get("/api/schedules/s").json()["status"] == "active"
