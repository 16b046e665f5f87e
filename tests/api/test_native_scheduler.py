"""An agent that keeps its own time: the clock sends it no prompts, people still may, and every look ahead says so."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import Finished, TestService

PROMPT = {"kind": "prompt", "prompt": "What is new?"}
FREE = {"requires_approval": False}
REASON = "native_scheduler"


@pytest.fixture
def answer() -> Finished:
    return Finished()


def put(http: httpx.Client, path: str, **document: Any) -> None:
    http.put(f"/api/{path}", json=document).raise_for_status()


def hourly(horarium: TestService, schedule_id: str, **parts: Any) -> None:
    usual = {"cron_expressions": ["0 * * * *"], "action": PROMPT, "overlap_policy": "allow_all"}
    horarium.create(schedule_id=schedule_id, approval_policy=FREE, **{**usual, **parts})


def last(horarium: TestService, schedule_id: str) -> str:
    event = horarium.history(schedule_id)[-1]
    return str(event.payload.get("reason") or event.event_type)


def foreseen(http: httpx.Client, schedule_id: str) -> tuple[str | None, str | None, str | None]:
    """What the schedule itself, a preview and an explanation say of the next occurrence."""
    schedule = http.get(f"/api/schedules/{schedule_id}").json()
    row = http.get(f"/api/schedules/{schedule_id}/preview").json()["rows"][0]
    told = http.get(f"/api/schedules/{schedule_id}/explain", params={"at": row["tick_at"]}).json()
    return schedule["next_run_reason"], row["reason"], told["reason"]


def test_the_clock_leaves_it_alone_and_people_may_still_ask(horarium: TestService, http: httpx.Client) -> None:
    put(http, "agents/ada", native_scheduler=True)
    hourly(horarium, "own", assignee_id="ada")
    hourly(horarium, "work", assignee_id="ada", action={"workflow_type": "w", "task_queue": "q"})
    horarium.advance(hours=1)
    assert [last(horarium, each) for each in ("own", "work")] == [REASON, "ScheduleTriggered"]
    shown = http.get("/api/schedules/own").json()
    assert (shown["last_dispatch_status"], shown["next_run_at"]) == (f"skipped_{REASON}", None)

    assert http.post("/api/schedules/own/trigger").json()["outcome"] == "triggered"
    span = {"start_time": "2026-02-28T22:00:00Z", "end_time": "2026-02-28T23:00:00Z"}
    filled = http.post("/api/schedules/own/backfill", json=span).json()
    assert (filled["fires_attempted"], filled["fires_started"]) == (1, 1)

    put(http, "agents/ada", native_scheduler=False)
    horarium.advance(hours=1)
    assert last(horarium, "own") == "ScheduleTriggered"


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_every_look_ahead_says_what_the_clock_will_do(horarium: TestService, http: httpx.Client) -> None:
    """Of a team whoever leads counts; where turns are taken, only if nobody's time is ours."""
    for name, native in (("ada", True), ("bob", False), ("cyd", True)):
        put(http, f"agents/{name}", native_scheduler=native)
    teams: dict[str, dict[str, Any]] = {
        "ada-leads": {"members": ["bob", "ada"], "lead": "ada"},
        "bob-leads": {"members": ["bob", "ada"]},
        "in-turn": {"members": ["ada", "bob"], "strategy": "round_robin"},
        "nobody": {"members": ["ada", "cyd"], "strategy": "round_robin"},
    }
    for name, document in teams.items():
        put(http, f"teams/{name}", **document)
        hourly(horarium, name, assignee_type="team", assignee_id=name)
    said = {name: foreseen(http, name) for name in teams}
    assert said == {name: (REASON,) * 3 if name in ("ada-leads", "nobody") else (None,) * 3 for name in teams}
    horarium.advance(hours=3)
    for name in teams:
        events = [str(each.payload.get("reason") or each.event_type) for each in horarium.history(name)]
        skipped = events.count(REASON)
        assert (skipped > 0) == (said[name][0] == REASON), name
        assert events.count("ScheduleTriggered") == (0 if skipped else 3), name
