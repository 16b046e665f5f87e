"""Recurring prompts against a workspace: what holds for every schedule whose action is a prompt.

Of the paths under `/workspaces` tells `test_workspaces.py`; the schedules themselves are the same.
"""

from __future__ import annotations

from typing import Any

import pytest
from seeds.door import Door, begins, runs_stay_open
from sqlalchemy import Connection

from horarium.features.schedules import rows as schedules
from horarium.platform.database.tables import plannings, positions
from horarium.testing import Busy, TestService

EXAMPLES: dict[str, tuple[dict[str, Any], str]] = {
    # each with the first time it fires after Friday, 10 April 2026, 00:00 UTC
    "hourly-security-scan": (
        {"name": "Hourly Security Scan", "cron_expr": "0 * * * *", "timezone": "UTC", "prompt": "Scan all open PRs."},
        "2026-04-10T01:00:00Z",
    ),
    "daily-standup": (
        {
            "name": "Daily Standup",
            "cron_expr": "0 9 * * 1-5",
            "timezone": "America/Los_Angeles",
            "prompt": "Generate a standup report.",
        },
        "2026-04-10T16:00:00Z",
    ),
    "weekly-retro": (
        {
            "name": "Weekly Retro",
            "cron_expr": "0 17 * * 5",
            "timezone": "America/New_York",
            "prompt": "Write a weekly retrospective.",
        },
        "2026-04-10T21:00:00Z",
    ),
    "nightly-cleanup": (
        {
            "name": "Nightly Cleanup",
            "cron_expr": "0 2 * * *",
            "timezone": "UTC",
            "prompt": "Archive stale branches.",
            "enabled": True,
        },
        "2026-04-10T02:00:00Z",
    ),
    "daily-security-audit": (
        {
            "name": "Daily Security Audit",
            "cron_expr": "0 9 * * *",
            "timezone": "America/New_York",
            "prompt": "Run a security audit of all open PRs.",
            "enabled": True,
        },
        "2026-04-10T13:00:00Z",
    ),
}
PROMPT: dict[str, Any] = {
    "schedule_id": "p",
    "cron_expr": "0 * * * *",
    "prompt": "Say hello.",
    "assignee_type": "agent",
    "assignee_id": "writer",
    "approval_policy": {"requires_approval": False},
}


@pytest.fixture(autouse=True)
def workspace(door: Door) -> None:
    door.post("/api/agents", {"id": "writer", "url": "https://agents.example.com/writer"}, status=201)


@pytest.mark.parametrize("schedule_id", EXAMPLES)
def test_every_example_is_created_with_its_next_run_at_once(door: Door, schedule_id: str) -> None:
    body, first = EXAMPLES[schedule_id]
    assert door.create(body, schedule_id=schedule_id)["next_fire_at"] == first
    found = door.describe(schedule_id)
    assert (found["name"], found["action"]["kind"]) == (body["name"], "prompt")
    assert found["action"]["prompt"] == body["prompt"]


def test_the_prompt_is_delivered_at_each_tick(door: Door, horarium: TestService) -> None:
    door.create(PROMPT)
    horarium.advance(hours=2)
    assert [request.action.target["prompt"] for request in horarium.launcher.deliveries] == ["Say hello."] * 2


def test_only_cron_and_prompt_are_required(door: Door) -> None:
    schedule_id = door.create(cron_expr="0 9 * * *", prompt="x")["schedule_id"]
    found = door.describe(schedule_id)
    assert (found.get("name"), found["status"]) == (None, "active")
    assert found["next_fire_at"] == "2026-04-10T09:00:00Z"


@pytest.mark.parametrize(
    "change",
    [{"cron_expr": "60 * * * *"}, {"timezone": "Local"}, {"timezone": "America/Nowhere"}, {"prompt": 7}],
    ids=["cron", "Local", "zone", "prompt"],
)
def test_a_bad_field_is_refused_on_create_and_on_update(door: Door, change: dict[str, Any]) -> None:
    door.post("/api/schedules", {**PROMPT, **change}, status=422)
    door.create(PROMPT)
    door.patch("/api/schedules/p", change, status=422)


def test_a_patch_changes_only_what_it_names(door: Door) -> None:
    door.create(PROMPT, name="Greeter")
    door.patch("/api/schedules/p", {"enabled": False})
    found = door.describe("p")
    assert (found["status"], found["name"], found["action"]["prompt"]) == ("paused", "Greeter", "Say hello.")


@pytest.mark.parametrize(
    ("change", "first"),
    [({"cron_expr": "30 5 * * *"}, "2026-04-10T05:30:00Z"), ({"timezone": "Asia/Kolkata"}, "2026-04-10T00:30:00Z")],
    ids=["cron", "zone"],
)
def test_a_new_cron_or_zone_moves_the_next_run_at_once(door: Door, change: dict[str, str], first: str) -> None:
    door.create(PROMPT)
    assert door.patch("/api/schedules/p", change)["next_fire_at"] == first


def test_a_deleted_prompt_is_gone(door: Door, horarium: TestService) -> None:
    door.create(PROMPT)
    door.delete("/api/schedules/p")
    horarium.advance(hours=2)
    assert horarium.launcher.deliveries == []


def test_a_manual_trigger_fires_outside_the_cadence(door: Door, horarium: TestService) -> None:
    door.create(PROMPT)
    door.post("/api/schedules/p/trigger")
    horarium.settle()
    assert len(horarium.launcher.deliveries) == 1
    assert door.describe("p")["next_fire_at"] == "2026-04-10T01:00:00Z"


@pytest.mark.parametrize("answer", [Busy()], ids=["busy"])
def test_a_busy_workspace_is_skipped_after_a_wait(door: Door, horarium: TestService) -> None:
    """It waits for two minutes before it gives up: an agent that is busy at nine has time at one past nine."""
    door.create(PROMPT)
    horarium.advance(hours=1, minutes=5)
    [run] = door.runs("p")
    assert (run["state"], run["status"], run["cause"]) == ("skipped", "SKIPPED", "target_busy")


@pytest.mark.parametrize("answer", [Busy()], ids=["busy"])
def test_every_schedule_that_a_busy_workspace_skips_says_so(door: Door, horarium: TestService) -> None:
    http = horarium.http()
    http.post("/api/agents", json={"id": "busy", "url": "http://127.0.0.1:9/"}).raise_for_status()
    for name in ("a", "b", "c"):
        prompt = {"name": name, "cron_expr": "0 1 * * *", "prompt": "Report."}
        http.post("/workspaces/busy/schedules", json=prompt).raise_for_status()
    horarium.advance(hours=1, minutes=5)
    shown = http.get("/workspaces/busy/schedules").json()
    assert [(row["last_status"], row["last_error"]) for row in shown] == [("skipped", "skipped: workspace busy")] * 3


@runs_stay_open
def test_a_prompt_has_five_minutes(door: Door, horarium: TestService) -> None:
    door.create(PROMPT)
    horarium.advance(hours=1, minutes=10)
    [run] = door.runs("p")
    assert (run["state"], run["finished_at"]) == ("timed_out", "2026-04-10T01:05:00Z")


@pytest.mark.parametrize(("given", "shown"), [({}, "runtime"), ({"source": "template"}, "template")])
def test_the_source_says_who_wrote_it(door: Door, given: dict[str, str], shown: str) -> None:
    door.create(PROMPT, **given)
    assert door.describe("p")["source"] == shown


@begins("2026-04-15T09:00:00Z")
def test_the_last_runs_are_told_newest_first_with_their_times(door: Door, horarium: TestService) -> None:
    door.create(PROMPT)
    horarium.advance(hours=25)
    runs = door.get("/api/schedules/p/runs", page_size=20)["runs"]
    assert len(runs) == 20
    assert runs[0]["nominal"] == "2026-04-16T10:00:00Z"
    assert all(run["finished_at"] == run["nominal"] and run["error"] is None for run in runs)


def test_one_bad_schedule_does_not_stop_the_others(door: Door, horarium: TestService) -> None:
    """A row that cannot be planned is set aside as `broken`, and everybody can see it."""
    door.create(PROMPT)
    door.create(PROMPT, schedule_id="bad")
    _spoil(horarium, "bad")
    horarium.advance(hours=1)
    assert [run["schedule_id"] for run in door.get("/api/runs")["runs"]] == ["p"]
    assert door.describe("bad")["status"] == "broken"


def _spoil(horarium: TestService, schedule_id: str) -> None:
    """As if a defect of ours or a hand in the database had done it: no door lets such a thing in."""
    identity = b"nonsense".ljust(16)

    def write(connection: Connection) -> None:
        row = schedules.find(connection, "default", schedule_id)
        assert row is not None
        uid = row.schedule_uid
        connection.execute(plannings.insert().values(planning=identity, text="nonsense"))
        connection.execute(positions.update().where(positions.c.schedule_uid == uid).values(planning=identity))

    horarium.resources.database.write(write)
