"""Recurring prompts against a workspace, by its own paths: every command of the source document, word for word."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from seeds.door import Door, begins

from horarium.testing import Refused, TestService

CREATE = """
curl -X POST http://localhost:8080/workspaces/{id}/schedules \
-H "Content-Type: application/json" \
-H "Authorization: Bearer {token}" \
-d '{
"name": "Daily Security Audit",
"cron_expr": "0 9 * * *",
"timezone": "America/New_York",
"prompt": "Run a security audit of all open PRs. Check for leaked secrets, SQL injection, and auth bypass.",
"enabled": true
}'
"""
DISABLE = """
curl -X PATCH http://localhost:8080/workspaces/{id}/schedules/{scheduleId} \
-H "Content-Type: application/json" \
-H "Authorization: Bearer {token}" \
-d '{"enabled": false}'
"""
DELETE = """
curl -X DELETE http://localhost:8080/workspaces/{id}/schedules/{scheduleId} \
-H "Authorization: Bearer {token}"
"""
RUN = """
curl -X POST http://localhost:8080/workspaces/{id}/schedules/{scheduleId}/run \
-H "Authorization: Bearer {token}"
"""
HISTORY = """
curl http://localhost:8080/workspaces/{id}/schedules/{scheduleId}/history \
-H "Authorization: Bearer {token}"
"""
HEALTH = """
curl http://localhost:8080/workspaces/{id}/schedules/health \
-H "X-Workspace-ID: {callerWorkspaceId}" \
-H "Authorization: Bearer {callerToken}"
"""
# Each with the first time it fires after Friday, 10 April 2026, 00:00 UTC.
EXAMPLES: list[tuple[dict[str, Any], str]] = [
    (
        {
            "name": "Hourly Security Scan",
            "cron_expr": "0 * * * *",
            "timezone": "UTC",
            "prompt": "Scan all open PRs for leaked secrets, SQL injection patterns, and auth bypass vulnerabilities. "
            "Report findings as a summary.",
        },
        "2026-04-10T01:00:00Z",
    ),
    (
        {
            "name": "Daily Standup",
            "cron_expr": "0 9 * * 1-5",
            "timezone": "America/Los_Angeles",
            "prompt": "Generate a standup report: what was completed yesterday, what is planned today, and any "
            "blockers. Post to the team channel.",
        },
        "2026-04-10T16:00:00Z",
    ),
    (
        {
            "name": "Weekly Retro",
            "cron_expr": "0 17 * * 5",
            "timezone": "America/New_York",
            "prompt": "Write a weekly retrospective covering PRs merged, issues closed, cron failures, and code review "
            "findings. Post as a GitHub issue.",
        },
        "2026-04-10T21:00:00Z",
    ),
    (
        {
            "name": "Nightly Cleanup",
            "cron_expr": "0 2 * * *",
            "timezone": "UTC",
            "prompt": "Archive stale branches older than 30 days. Close issues that have been inactive for 60 days "
            "with a comment explaining the auto-close policy.",
            "enabled": True,
        },
        "2026-04-10T02:00:00Z",
    ),
]


class Curl:
    """Says what a command of the document says, with the names that its braces stand for."""

    def __init__(self, horarium: TestService, **names: str) -> None:
        self._horarium, self._names = horarium, names

    def __call__(self, command: str, **names: str) -> httpx.Response:
        for name, value in {**self._names, **names}.items():
            command = command.replace(f"{{{name}}}", value)
        method, url, headers, body = _read(shlex.split(command))
        return self._horarium.http(token=None).request(
            method, url.removeprefix("http://localhost:8080"), headers=headers, content=body
        )


def _read(words: list[str]) -> tuple[str, str, dict[str, str], str | None]:
    assert words.pop(0) == "curl"
    method, url, headers, body = "GET", "", {}, None
    while words:
        match words.pop(0):
            case "-X":
                method = words.pop(0)
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-d":
                body = words.pop(0)
            case address:
                url = address
    return method, url, headers, body


@pytest.fixture
def curl(horarium: TestService, door: Door) -> Curl:
    """Two agents that are siblings; the token is that of the first."""
    for agent in ("dev-lead", "peer"):
        url = f"https://agents.example.com/{agent}"
        door.post("/api/agents", {"id": agent, "name": agent, "url": url}, status=201)
    tokens = {agent: door.post(f"/api/agents/{agent}/tokens", {})["secret"] for agent in ("dev-lead", "peer")}
    return Curl(horarium, id="dev-lead", token=tokens["dev-lead"], callerWorkspaceId="peer", callerToken=tokens["peer"])


@begins("2026-04-15T12:00:00Z")
def test_every_command_of_the_document(curl: Curl, door: Door, horarium: TestService) -> None:
    made = curl(CREATE)
    assert (made.status_code, made.json()["status"]) == (201, "created")
    assert made.json()["next_run_at"] == "2026-04-15T13:00:00Z", "nine in New York"
    schedule_id = made.json()["id"]
    fired = curl(RUN, scheduleId=schedule_id)
    prompt = "Run a security audit of all open PRs. Check for leaked secrets, SQL injection, and auth bypass."
    assert (fired.status_code, fired.json()["workspace_id"], fired.json()["prompt"]) == (200, "dev-lead", prompt)
    horarium.settle()
    assert [each.action.target["prompt"] for each in horarium.launcher.deliveries] == [prompt]
    horarium.advance(hours=2)
    newest, first = curl(HISTORY, scheduleId=schedule_id).json()
    assert set(newest) == {"timestamp", "duration_ms", "status", "error_detail", "request"}
    assert (first["status"], first["error_detail"], first["request"]["prompt"]) == ("success", "", prompt)
    assert datetime.fromisoformat(newest["timestamp"]) == datetime(2026, 4, 15, 13, tzinfo=UTC)
    [shown] = curl(HEALTH).json()
    assert (shown["run_count"], shown["last_status"], shown["last_error"]) == (2, "success", "")
    assert shown.keys().isdisjoint({"prompt", "cron_expr", "timezone"})
    assert curl(DISABLE, scheduleId=schedule_id).json() == {"status": "updated"}
    horarium.advance(days=2)
    [listed] = door.get("/workspaces/dev-lead/schedules")
    assert (listed["enabled"], listed["run_count"], listed["source"]) == (False, 2, "runtime")
    assert curl(DELETE, scheduleId=schedule_id).json() == {"status": "deleted"}
    assert door.get("/workspaces/dev-lead/schedules") == []


def test_every_example_of_the_document_is_created_with_its_next_run_at_once(curl: Curl, door: Door) -> None:
    for body, first in EXAMPLES:
        assert door.post("/workspaces/dev-lead/schedules", body, status=201)["next_run_at"] == first
    listed = door.get("/workspaces/dev-lead/schedules")
    assert [each["name"] for each in listed] == [body["name"] for body, _ in EXAMPLES]
    assert all(each["enabled"] and each["last_status"] == "" for each in listed)


@pytest.mark.parametrize("answer", [Refused("workspace container not running")], ids=["refused"])
def test_what_failed_says_why_in_the_list_and_in_the_history(curl: Curl, horarium: TestService, door: Door) -> None:
    schedule_id = curl(CREATE).json()["id"]
    horarium.advance(hours=14)
    [row] = curl(HISTORY, scheduleId=schedule_id).json()
    assert (row["status"], "workspace container not running" in row["error_detail"]) == ("error", True)
    [listed] = door.get("/workspaces/dev-lead/schedules")
    assert (listed["last_status"], listed["last_error"]) == ("error", row["error_detail"])


def test_an_event_elsewhere_nudges_the_schedules_of_a_name(curl: Curl, door: Door, horarium: TestService) -> None:
    """What a GitHub webhook did there to every workspace is one request here, in one namespace, and safe to repeat."""
    for workspace in ("dev-lead", "peer"):
        body = {"name": f"{workspace} pick-up-work", "cron_expr": "0 2 * * *", "prompt": "Pick up work."}
        door.post(f"/workspaces/{workspace}/schedules", body, status=201)
        door.post(f"/workspaces/{workspace}/schedules", {**body, "name": "other"}, status=201)
    nudge = {"action": "trigger", "filter": {"name_contains": "pick-up-work", "status": "active"}}
    delivery = {"Idempotency-Key": "72d3162e-cc78-11e3-81ab-4c9367dc0958"}
    for _ in range(2):
        done = horarium.http().post("/api/schedules/bulk", json=nudge, headers=delivery).json()
        assert [each["outcome"] for each in done["outcomes"]] == ["triggered", "triggered"], json.dumps(done)
    horarium.settle()
    assert len(horarium.launcher.deliveries) == 2
