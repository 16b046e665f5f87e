"""PATCH of agents, teams and assignments: single fields change, the others stay."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

WRITER = {"name": "The writer", "capacity": 3, "url": "https://agents.example.com/writer", "token": "t0ken",
          "policies": {"budget": {"max_daily_runs": 5}, "approval_policy": {"gates": ["publish"]}}}  # fmt: skip
WORK = {"nodes": [{"id": "a", "action": {"kind": "pull", "queue": "q", "workflow_type": "a"}}]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "agents/writer": (WRITER, {"policies": {"budget": {"max_daily_runs": 6}}}),
    "teams/desk": ({"members": ["writer"], "name": "Desk", "budget": {"max_daily_runs": 4}}, {"strategy": "lead"}),
    "assignments/brief": (
        {"workflow_id": "w", "assignee_id": "writer", "retry_policy": {"max_retries": 0}},
        {"approval_policy": {"requires_approval": False}},
    ),
}
_MOVES = ("version", "updated_at", "outcome")


@pytest.fixture
def kept(http: httpx.Client) -> dict[str, dict[str, Any]]:
    http.put("/api/workflows/w", json=WORK).raise_for_status()
    return {path: http.put(f"/api/{path}", json=document).json() for path, (document, _) in CASES.items()}


def plain(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _MOVES}


def merged(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for name, value in changes.items():
        result[name] = merged(result.get(name) or {}, value) if isinstance(value, dict) else value
    return result


def test_a_patch_changes_single_fields_and_keeps_the_others(
    http: httpx.Client, kept: dict[str, dict[str, Any]]
) -> None:
    for path, (_, changes) in CASES.items():
        before = http.get(f"/api/{path}")
        answer = http.patch(f"/api/{path}", json=changes, headers={"If-Match": before.headers["etag"]})
        found = answer.json()
        assert (answer.status_code, found["outcome"]) == (200, "updated" if found["version"] == 2 else "unchanged")
        expected = merged(plain(before.json()), changes)
        assert plain(http.get(f"/api/{path}").json()) == expected
        if found["version"] == 2:
            late = http.patch(f"/api/{path}", json={"name": "x"} if "team" in path else changes,
                              headers={"If-Match": before.headers["etag"]})  # fmt: skip
            assert late.status_code == 412
        assert http.patch(f"/api/{path}", json=changes).json()["outcome"] == "unchanged"
        assert http.patch(f"/api/{path}", json={"nonsense": None}).status_code == 422
        assert http.patch(f"/api/{path}x", json=changes).status_code == 404


def test_a_patch_of_the_token_alone_keeps_it_or_takes_it_away(
    http: httpx.Client, kept: dict[str, dict[str, Any]]
) -> None:
    changed = http.patch("/api/agents/writer", json={"capacity": None}).json()
    assert (changed["capacity"], changed["has_token"], changed["name"]) == (1, True, "The writer")
    assert http.patch("/api/agents/writer", json={"token": None}).json()["has_token"] is False
    assert http.patch("/api/agents/writer", json={"token": "new"}).json()["has_token"] is True


def test_the_same_patch_with_the_same_key_is_made_once_and_audited(
    http: httpx.Client, kept: dict[str, dict[str, Any]]
) -> None:
    for _ in range(2):
        answer = http.patch("/api/teams/desk", json={"name": "New"}, headers={"Idempotency-Key": "k"}).json()
        assert answer["version"] == 2
    entries = [each for each in http.get("/api/audit").json()["entries"] if each["act"] == "patch_team"]
    assert [each["detail"]["team_id"] for each in entries] == ["desk"]


def test_a_role_that_may_not_write_may_not_patch(horarium: Any, kept: dict[str, dict[str, Any]]) -> None:
    from horarium.features.tenants import service as tenant_service

    viewer = tenant_service.issue_token(horarium.resources, horarium.caller, name="v", role="viewer")
    for path, (_, changes) in CASES.items():
        assert horarium.http(token=viewer.secret).patch(f"/api/{path}", json=changes).status_code == 403
