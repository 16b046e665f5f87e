"""A pause may have an end: the schedule goes on by itself at that instant, also if nobody was there to see it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

# The clock stands at midnight of 1 March; the first fire would be at 01:00.
HOURLY = {"schedule_id": "hourly", "spec": {"cron_expressions": ["0 * * * *"]}, "action": {"workflow_type": "report"}}


@pytest.fixture(autouse=True)
def _hourly(http: httpx.Client) -> None:
    assert http.post("/api/schedules", json={**HOURLY, "overlap_policy": "allow_all"}).status_code == 201


def pause(http: httpx.Client, **said: Any) -> httpx.Response:
    return http.post("/api/schedules/hourly/pause", json=said)


def fires(horarium: TestService) -> list[int]:
    """The hours that have a run."""
    return [run.nominal.hour for run in horarium.runs("hourly") if run.nominal is not None]


def test_a_pause_ends_at_its_instant_and_history_says_who_wanted_it(http: httpx.Client, horarium: TestService) -> None:
    done = pause(http, until="2026-03-01T03:00:00Z", reason="the database moves").json()
    shown = http.get("/api/schedules/hourly").json()
    assert done["outcome"] == "paused"
    assert done["next_run_at"] == shown["next_run_at"] == "2026-03-01T03:00:00Z"
    assert (shown["paused_until"], shown["pause_reason"], shown["paused_by"]) == (
        "2026-03-01T03:00:00Z", "the database moves", "admin",
    )  # fmt: skip
    horarium.advance(hours=4)
    assert fires(horarium) == [3, 4], "the occurrence at its end is not in the pause"
    after = http.get("/api/schedules/hourly").json()
    assert [after[name] for name in ("status", "paused_at", "paused_until", "pause_reason", "paused_by")] == [
        "active", None, None, None, None,
    ]  # fmt: skip
    paused, resumed = http.get("/api/schedules/hourly/history").json()["events"][1:3]
    assert paused["payload"]["until"] == resumed["payload"]["resumed_at"] == "2026-03-01T03:00:00Z"
    assert resumed["payload"]["command_context"] == {
        "principal": "admin", "source": "engine", "reason": "the database moves",
    }  # fmt: skip
    assert horarium.verify() == []


def test_the_reason_of_a_pause_leaves_the_note_alone(http: httpx.Client) -> None:
    def shown() -> tuple[str | None, str | None]:
        found = http.get("/api/schedules/hourly").json()
        return found["note"], found["pause_reason"]

    http.patch("/api/schedules/hourly", json={"note": "the author's"}).raise_for_status()
    assert pause(http, reason="the database moves").json()["outcome"] == "paused"
    assert shown() == ("the author's", "the database moves")
    assert pause(http, reason="the database moves").json()["outcome"] == "unchanged"
    http.post("/api/schedules/hourly/resume", json={"reason": "done"}).raise_for_status()
    bulk = {"action": "pause", "filter": {"ids": ["hourly"]}, "reason": "a holiday"}
    http.post("/api/schedules/bulk", json=bulk).raise_for_status()
    assert shown() == ("the author's", "a holiday")
    # A Durable Workflow client sends a note, which is both.
    pause(http, note="maintenance").raise_for_status()
    assert shown() == ("maintenance", "maintenance")


def test_whoever_was_down_at_the_end_catches_up_from_there(http: httpx.Client, horarium: TestService) -> None:
    pause(http, until="2026-03-01T02:30:00Z")
    horarium.sleep(hours=5, minutes=30)
    horarium.settle()
    (run,) = horarium.runs("hourly")
    assert fires(horarium) == [3]
    assert run.covers is not None
    assert run.covers.count == 3, "what fell into the pause is not made up for"
    assert horarium.verify() == []


def test_a_new_pause_replaces_the_old_one(http: httpx.Client, horarium: TestService) -> None:
    first = pause(http, until="2026-03-01T03:00:00Z", reason="one").json()
    assert pause(http, until="2026-03-01T03:00:00Z", reason="one").json()["outcome"] == "unchanged"
    assert pause(http, until="2026-03-01T05:30:00Z", reason="two").json()["version"] == first["version"] + 1
    horarium.advance(hours=5)
    assert fires(horarium) == []
    assert pause(http).json()["outcome"] == "paused"
    horarium.advance(hours=5)
    shown = http.get("/api/schedules/hourly").json()
    assert (fires(horarium), shown["status"], shown["paused_until"]) == ([], "paused", None)


def test_a_resume_by_hand_leaves_no_end_behind(http: httpx.Client, horarium: TestService) -> None:
    pause(http, until="2026-03-01T03:00:00Z")
    http.post("/api/schedules/hourly/resume")
    pause(http)
    horarium.advance(hours=4)
    assert fires(horarium) == []


def test_what_was_read_may_be_sent_back(http: httpx.Client, horarium: TestService) -> None:
    pause(http, until="2026-03-01T03:00:00Z")
    read = http.get("/api/schedules/hourly").json()
    assert http.put("/api/schedules/hourly", json=read).json()["outcome"] == "unchanged"
    assert http.get("/api/schedules/hourly").json()["paused_until"] == "2026-03-01T03:00:00Z"


@pytest.mark.parametrize("until", ["2026-03-01T00:00:00Z", "2026-02-28T23:00:00Z", "tomorrow", 5])
def test_an_end_that_is_no_time_to_come_is_refused(http: httpx.Client, until: object) -> None:
    answer = pause(http, until=until)
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["until"])
    assert http.get("/api/schedules/hourly").json()["status"] == "active"


def test_the_registrar_takes_an_end_of_a_pause_only(http: httpx.Client, horarium: TestService) -> None:
    said = {"schedule_id": "hourly", "until": "2026-03-01T01:30:00Z"}
    assert http.post("/schedules/pause", json={**said, "paused": False}).status_code == 422
    assert http.post("/schedules/pause", json={**said, "paused": True}).json()["paused"]
    horarium.advance(hours=2)
    assert fires(horarium) == [2]
