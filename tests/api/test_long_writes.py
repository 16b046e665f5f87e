"""Requests that change much share SQLite's writer with other tenants: in parts, or planned before they take it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from horarium.core.document import document
from horarium.core.policy.approval import agreed_hash
from horarium.features.approvals import request_rows
from horarium.features.runs import end_rows, transition_rows
from horarium.features.schedules import service as schedule_service
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

HTTP = {"kind": "http", "url": "http://example.com"}
AT = [
    f"2030-{month:02}-{day:02}T{hour:02}:00:00Z" for month in range(1, 4) for day in range(1, 29) for hour in range(24)
]
KEY = {"Idempotency-Key": "k"}


def agent_with_schedules(http: httpx.Client, number: int) -> list[str]:
    http.post("/api/agents", json={"id": "a", "url": "https://agents.example.com/a"}).raise_for_status()
    names = [f"s{each:02}" for each in range(number)]
    for name in names:
        body = {
            "schedule_id": name,
            "spec": {"cron_expressions": ["0 2 * * *"]},
            "assignee": {"type": "agent", "id": "a"},
            "action": {"kind": "prompt", "prompt": "Go."},
        }
        http.post("/api/schedules", json=body).raise_for_status()
    return names


@pytest.mark.parametrize(
    ("query", "told", "most"), [("", "paused_schedules", 10), ("?purge=true", "deleted_schedules", 1)]
)
def test_a_deletion_of_an_agent_with_a_key_is_many_transactions(
    http: httpx.Client, horarium: TestService, query: str, told: str, most: int
) -> None:
    names = agent_with_schedules(http, 22)
    held: list[float] = []
    horarium.resources.database.watch_writes(held.append)
    first = http.delete(f"/api/agents/a{query}", headers=KEY)
    assert (first.status_code, first.json()[told]) == (200, names)
    assert len(held) >= len(names) / most
    again = http.delete(f"/api/agents/a{query}", headers=KEY)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    other = http.delete("/api/agents/b", headers=KEY)
    assert (other.status_code, other.json()["reason"]) == (422, "idempotency_key_reused")


def test_a_refused_deletion_of_an_agent_may_be_tried_again_with_its_key(http: httpx.Client) -> None:
    assert http.delete("/api/agents/a", headers=KEY).status_code == 404
    agent_with_schedules(http, 1)
    assert http.delete("/api/agents/a", headers=KEY).json()["paused_schedules"] == ["s00"]


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("headers", [{}, KEY], ids=["without a key", "with a key"])
@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("POST", "/api/schedules", {"schedule_id": "new"}),
        ("POST", "/api/schedules/upsert", {"schedule_id": "s"}),
        ("PUT", "/api/schedules/s", {}),
        ("PATCH", "/api/schedules/s", {}),
    ],
)
def test_a_large_definition_is_compiled_before_the_writer_is_taken(
    http: httpx.Client,
    horarium: TestService,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    named: dict[str, str],
    headers: dict[str, str],
) -> None:
    horarium.create({"schedule_id": "s", "spec": {"cron_expressions": ["0 2 * * *"]}, "action": HTTP})
    compiled: list[str] = []
    parse = document.parse_definition

    def noted(*given: Any, **options: Any) -> Any:
        compiled.append(threading.current_thread().name)
        return parse(*given, **options)

    monkeypatch.setattr(schedule_service, "parse_definition", noted)
    monkeypatch.setattr("horarium.features.schedules.creation.parse_definition", noted)
    answer = http.request(method, path, json={"spec": {"at": AT}, "action": HTTP, **named}, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    assert compiled
    assert not any(name.startswith("horarium-write") for name in compiled)
    stored = http.get(f"/api/schedules/{named.get('schedule_id', 's')}").json()
    assert len(stored["spec"]["at"]) == len(AT)


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("headers", [{}, KEY], ids=["without a key", "with a key"])
def test_the_end_of_a_workflow_and_its_steps_is_planned_before_the_writer_is_taken(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    http.put("/api/workflows/w", json={"nodes": [{"id": f"n{n}", "action": HTTP} for n in range(3)]}).raise_for_status()
    run_id = http.post("/api/workflows/w/runs", json={}).json()["run_id"]
    ended: list[str] = []
    end = end_rows.end_below

    def noted(*given: Any) -> Any:
        ended.append(threading.current_thread().name)
        return end(*given)

    monkeypatch.setattr(transition_rows, "end_below", noted)
    http.post(f"/api/runs/{run_id}/terminate", headers=headers).raise_for_status()
    assert ended
    assert not any(name.startswith("horarium-write") for name in ended)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_inputs_that_many_runs_share_are_hashed_once(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[object] = []

    def noted(inputs: object, reply: str | None, texts: Mapping[str, object] | None = None) -> str:
        hashed.append(inputs)
        return agreed_hash(inputs, reply, texts)

    monkeypatch.setattr(request_rows, "agreed_hash", noted)
    body = {
        "schedule_id": "s",
        "spec": {"cron_expressions": ["0 * * * *"]},
        "action": {**HTTP, "input": {"x": 1}},
        "approval_policy": {"requires_approval": True},
        "overlap_policy": "allow_all",
    }
    http.post("/api/schedules", json=body).raise_for_status()
    window = {"start_time": "2026-02-01T00:00:00Z", "end_time": "2026-02-01T09:00:00Z"}
    http.post("/api/schedules/s/backfill", json=window).raise_for_status()
    asked = http.get("/api/approvals").json()["approvals"]
    assert len({each["input_hash"] for each in asked}) == 1
    assert (len(asked), hashed) == (9, [{"x": 1}])
