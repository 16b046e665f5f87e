"""Warnings at every write about prompts that reach no agent, and addresses that cannot be called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from horarium.features.tenants import rows as tenant_rows
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.testing import TestService

CRON = {"cron_expressions": ["17 3 1 1 *"]}
INSIDE = "inside.example is at 10.1.2.3, a private address"
WORK = {"kind": "http", "url": "https://inside.example/x"}


@pytest.fixture
def asked(horarium: TestService) -> list[str]:
    """Every host is at a private address. To resolve it is to write with the only writer that SQLite has."""
    hosts: list[str] = []

    async def resolve(host: str, port: int, group: str) -> Sequence[str]:
        def write(connection: Any) -> None:
            tenant_rows.insert_namespace(connection, f"ns-{len(hosts)}-{host}"[:60], "", now=horarium.now)

        horarium.resources.database.write(write)
        hosts.append(host)
        return ["10.1.2.3"]

    state = horarium.parts.api.state
    settings = state.resources.settings.model_copy(update={"check_addresses": True})
    state.resources = replace(state.resources, settings=settings, guard=AddressGuard(AddressPolicy(), resolve))
    return hosts


def warned(answer: httpx.Response) -> list[str]:
    assert answer.status_code < 300, answer.text
    found: list[str] = answer.json().get("warnings", [])
    return found


def test_each_write_of_an_address_warns_when_it_is_done(http: httpx.Client, asked: list[str]) -> None:
    document = {"schedule_id": "s", "spec": CRON, "action": WORK}
    keyed = {"Idempotency-Key": "k"}
    upserts = [{**document, "schedule_id": "u"}, {**document, "schedule_id": "u", "action": {**WORK, "method": "GET"}}]
    answers = [
        http.post("/api/schedules", json=document, headers=keyed),
        *(http.post("/api/schedules/upsert", json=each) for each in upserts),
        http.patch("/api/schedules/s", json={"action": {"url": "https://inside.example/y"}}),
        http.put("/api/schedules/s", json={"action": WORK}),
        http.put("/api/agents/writer", json={"url": "https://inside.example/a"}),
        http.patch("/api/agents/writer", json={"capacity": 2}, headers={"Idempotency-Key": "p"}),
        http.put("/api/workflows/w", json={"nodes": [{"id": "a", "action": WORK}]}),
        http.post("/api/schedules", json={"schedule_id": "p", "spec": CRON, "prompt": "hi", "assignee_id": "writer"}),
        http.post("/workspaces/writer/schedules", json={"cron_expr": "@daily", "prompt": "hi"}),
        http.post(
            "/api/subscriptions",
            json={"kinds": ["run_finished"], "url": "https://inside.example/", "secret": "c2VjcmV0" * 4, "name": "n"},
        ),
    ]
    for answer in answers:
        assert any(INSIDE in each for each in warned(answer)), answer.text
    assert answers[0].headers["etag"] == '"1"'
    assert "the URL of the agent 'writer'" in " ".join(warned(answers[-3]))
    again = http.post("/api/schedules", json=document, headers=keyed)
    assert (again.status_code, again.json()["schedule_id"]) == (201, "s")


def test_a_bundle_warns_beside_each_change_and_in_a_dry_run(http: httpx.Client, asked: list[str]) -> None:
    plain = {"schedule_id": "t", "spec": CRON, "workflow_type": "w"}
    bundle = {
        "agents": [{"id": "writer", "url": "https://inside.example/"}, {"id": "editor"}],
        "schedules": [{"schedule_id": "s", "spec": CRON, "action": WORK}, plain],
    }
    for dry_run in (True, False):
        changes = http.post("/api/apply", json={**bundle, "dry_run": dry_run}).json()["changes"]
        found = {each["name"]: " ".join(each.get("warnings", [])) for each in changes}
        assert INSIDE in found["writer"]
        assert INSIDE in found["s"]
        assert INSIDE not in found["t"] + found["editor"]
        assert "url: is not set" in found["editor"]


def test_what_names_no_address_or_is_switched_off_asks_no_name_server(
    horarium: TestService, http: httpx.Client, asked: list[str]
) -> None:
    http.post("/api/schedules", json={"schedule_id": "s", "spec": CRON, "action": WORK})
    asked.clear()
    assert warned(http.patch("/api/schedules/s", json={"note": "n"})) == []
    assert warned(http.patch("/api/schedules/s", json={"spec": {"cron_expressions": ["18 3 1 1 *"]}})) == []
    assert http.get("/api/schedules/s").status_code == 200
    state = horarium.parts.api.state
    settings = state.resources.settings.model_copy(update={"check_addresses": False})
    state.resources = replace(state.resources, settings=settings)
    assert warned(http.patch("/api/schedules/s", json={"action": {"url": "https://inside.example/z"}})) == []
    assert asked == []


PLAIN = {"requires_approval": False}


def test_a_prompt_that_reaches_no_agent_warns_when_it_is_written(http: httpx.Client) -> None:
    for name, url in (("writer", None), ("editor", "https://agents.example.com/e")):
        http.put(f"/api/agents/{name}", json={"url": url})
    http.put("/api/teams/desk", json={"members": ["editor", "writer"], "strategy": "round_robin"})
    nobody = "assignee_id: is required for a prompt"
    unreachable = "assignee_id: the agent 'writer' has no URL"
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({}, nobody),
        ({"assignee_id": "writer"}, unreachable),
        ({"assignee_id": "desk", "assignee_type": "team"}, unreachable),
        ({"assignee_id": "editor"}, None),
    ]
    for number, (who, said) in enumerate(cases):
        document = {"schedule_id": f"s{number}", "spec": CRON, "prompt": "hi", **who, "approval_policy": PLAIN}
        draft = http.post("/api/schedules/draft", json=document).json()
        made = warned(http.post("/api/schedules", json=document))
        for found in (draft["warnings"], made):
            assert any(each.startswith(said) for each in found) if said else found == []
    moved = {"assignee_type": "agent", "assignee_id": "writer"}
    assert any(unreachable in each for each in warned(http.patch("/api/schedules/s3", json=moved)))
    node = {"id": "a", "action": {"kind": "prompt", "prompt": "hi"}, "assignee_type": "agent", "assignee_id": "writer"}
    done = http.put("/api/workflows/w", json={"nodes": [node]})
    assert any(each.startswith("nodes.0.assignee_id: the agent 'writer' has no URL") for each in warned(done))


def test_a_token_that_a_new_url_removes_is_named(http: httpx.Client) -> None:
    http.put("/api/agents/writer", json={"url": "https://a.example.com/", "token": "t0ken"})
    assert warned(http.patch("/api/agents/writer", json={"url": "https://a.example.com/other"})) == []
    done = http.patch("/api/agents/writer", json={"url": "https://b.example.com/"})
    assert [each.split(":")[0] for each in warned(done)] == ["token"]
    assert done.json()["has_token"] is False
