"""Tokens of agents: each opens the work of one agent, for as long as there is that agent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def issue(http: httpx.Client, agent_id: str, **body: Any) -> dict[str, Any]:
    answer = http.post(f"/api/agents/{agent_id}/tokens", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_it_opens_the_work_of_its_agent_and_nothing_else(horarium: TestService, http: httpx.Client) -> None:
    for name in ("writer", "reader"):
        http.put(f"/api/agents/{name}", json={}).raise_for_status()
    issued = issue(http, "writer", expires_at="2026-03-08T00:00:00Z")
    assert (issued["role"], issued["subject"], issued["name"]) == ("agent", "writer", "writer")
    [listed] = [each for each in http.get("/api/tokens").json()["tokens"] if each["token_id"] == issued["token_id"]]
    assert "secret" not in listed
    *_, entry = http.get("/api/audit", params={"order": "oldest", "act": "create_agent_token"}).json()["entries"]
    assert (entry["detail"]["agent_id"], entry["detail"]["token_id"]) == ("writer", issued["token_id"])

    own = horarium.http(token=issued["secret"])
    assert [own.get(f"/api/agents/{name}").status_code for name in ("writer", "reader")] == [200, 404]
    assert [own.get(f"/api/{each}").status_code for each in ("agents", "schedules", "tokens")] == [403] * 3
    assert own.post("/api/agents/writer/tokens", json={}).status_code == 403
    horarium.advance(days=8)
    assert own.get("/api/agents/writer").status_code == 401


@pytest.mark.parametrize(
    ("agent_id", "body", "status", "field"),
    [
        ("nobody", {}, 404, None),
        ("writer", {"role": "admin"}, 422, "role"),
        ("writer", {"subject": "reader"}, 422, "subject"),
        ("writer", {"name": ""}, 422, "name"),
        ("writer", {"expires_at": "2026-02-01T00:00:00Z"}, 422, "expires_at"),
    ],
    ids=["nobody", "another role", "another's", "no name", "over already"],
)
def test_nothing_else_can_be_asked_for(
    http: httpx.Client, agent_id: str, body: dict[str, Any], status: int, field: str | None
) -> None:
    http.put("/api/agents/writer", json={}).raise_for_status()
    answer = http.post(f"/api/agents/{agent_id}/tokens", json=body)
    assert answer.status_code == status, answer.text
    assert field is None or list(answer.json()["errors"]) == [field]


def test_with_the_agent_go_its_tokens_and_nobody_else_s(horarium: TestService, http: httpx.Client) -> None:
    """Also those that were given out beside: whoever has its name later is somebody else."""
    for name in ("writer", "reader"):
        http.put(f"/api/agents/{name}", json={}).raise_for_status()
    beside = {"beside": {"name": "writer", "role": "agent"}, "person": {"name": "writer", "role": "viewer"}}
    secrets = {who: http.post("/api/tokens", json=body).json()["secret"] for who, body in beside.items()}
    secrets |= {name: issue(http, name)["secret"] for name in ("writer", "reader")}
    assert http.delete("/api/agents/writer").status_code == 200
    http.put("/api/agents/writer", json={}).raise_for_status()
    opened = {who: horarium.http(token=each).get("/api/cluster/info").status_code for who, each in secrets.items()}
    assert opened == {"beside": 401, "writer": 401, "person": 200, "reader": 200}
