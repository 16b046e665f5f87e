"""What the Durable Workflow contract says about firing: overlap, triggers, ticks, missed fires, backfills.

Where Horarium has settled something differently, the test shows our outcome and names the rule.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from seeds.door import Door, begins, runs_stay_open
from seeds.durable import HOURLY, epoch

from horarium.cli.main import main
from horarium.testing import TestService, service

# ── overlap ──────────────────────────────────────────────────────────────────────────────────────────

BUSY = {
    # policy: states of the runs after three occurrences during one long run, and the reasons of the skips
    "Skip": (["running"], ["overlap_policy_skip", "overlap_policy_skip"]),
    "BufferOne": (["running", "held"], ["buffer_full"]),
    "BufferAll": (["running", "held", "held"], []),
    "AllowAll": (["running", "running", "running"], []),
    "TerminateOther": (["terminated", "terminated", "running"], []),
}


@runs_stay_open
@pytest.mark.parametrize("policy", BUSY)
def test_the_policy_decides_while_a_run_is_active(door: Door, horarium: TestService, policy: str) -> None:
    states, reasons = BUSY[policy]
    door.create(HOURLY, overlap_policy=policy, timeout_seconds=86_400)
    horarium.advance(hours=3)
    assert [run["state"] for run in door.runs("hourly")] == states
    assert [event["payload"]["reason"] for event in door.events("hourly", "ScheduleTriggerSkipped")] == reasons
    assert horarium.verify() == []


@runs_stay_open
def test_cancel_other_stops_the_first_run_before_the_new_one_starts(door: Door, horarium: TestService) -> None:
    """The new run is held until the old one has stopped, at the latest for `cancel_grace_seconds`."""
    door.create(HOURLY, overlap_policy="CancelOther", timeout_seconds=86_400)
    horarium.advance(hours=2)
    assert [run["state"] for run in door.runs("hourly")] == ["cancelled", "running"]
    assert len(horarium.launcher.cancels) == 1
    kinds = [event["event_type"] for event in door.events("hourly")]
    assert kinds == ["ScheduleCreated", "ScheduleTriggered", "ScheduleBuffered", "ScheduleTriggered"]


@runs_stay_open
@pytest.mark.parametrize(("policy", "waiting"), [("BufferOne", 1), ("BufferAll", 2)])
def test_a_buffered_trigger_starts_when_the_active_run_has_ended(
    door: Door, horarium: TestService, policy: str, waiting: int
) -> None:
    """It does not wait for the next tick: the end of a run releases the next one in the same transaction."""
    door.create(HOURLY, overlap_policy=policy, timeout_seconds=86_400)
    horarium.advance(hours=3)
    assert door.describe("hourly")["held_runs"] == waiting
    for done in range(waiting):
        horarium.finish(horarium.runs("hourly")[done])
    assert [run["state"] for run in door.runs("hourly")] == ["succeeded"] * waiting + ["running"]
    drained = [event["payload"] for event in door.events("hourly", "ScheduleTriggered")][1:]
    assert [payload["outcome"] for payload in drained] == ["drained"] * waiting
    assert all(payload["from_buffer"] for payload in drained)


# ── triggering ───────────────────────────────────────────────────────────────────────────────────────


@runs_stay_open
def test_a_manual_trigger_returns_the_instance_or_none(door: Door) -> None:
    door.create(HOURLY)
    first = door.post("/api/schedules/hourly/trigger")
    assert first["workflow_id"] == f"schedule:hourly:manual:{first['run_id']}"
    second = door.post("/api/schedules/hourly/trigger")
    assert (second["outcome"], second["reason"]) == ("skipped", "overlap_policy_skip")
    assert "workflow_id" not in second


def test_a_tick_tells_a_row_for_each_due_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command works on the machine's clock, so the schedule is written as if ten minutes ago."""
    database = f"sqlite:///{tmp_path / 'horarium.db'}"
    now = datetime.now(UTC).replace(microsecond=0)
    overdue, later, ahead = (now + timedelta(minutes=minutes) for minutes in (-9, -8, 60))
    with service(at=now - timedelta(minutes=10), database=database) as horarium:
        at = [moment.isoformat() for moment in (overdue, later, ahead)]
        horarium.create(schedule_id="moments", at=at, workflow_type="sync")
    assert main(["tick", "--json", "--database", database, "--data-dir", str(tmp_path)]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["schedule_id"], row["outcome"]) == ("moments", "triggered")
    assert row["instance_id"] == f"schedule:moments:{int(overdue.timestamp())}"
    # The occurrence is the overdue one; the next fire is counted from the clock, so the later one is passed over.
    assert datetime.fromisoformat(row["occurrence_time"]) == overdue
    assert datetime.fromisoformat(row["next_fire_at"]) == ahead
    assert datetime.fromisoformat(row["last_fired_at"]) >= now


def test_after_a_downtime_it_fires_once_then_resumes(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    horarium.settle()
    horarium.sleep(hours=5, minutes=30)
    horarium.settle()
    [run] = door.runs("hourly")
    assert run["nominal"] == "2026-04-10T01:00:00Z"
    # The contract only says that the others are skipped; here the run says which ones it stands for.
    assert run["covers"] == {"first": "2026-04-10T01:00:00Z", "last": "2026-04-10T05:00:00Z", "count": 5}
    assert door.describe("hourly")["next_fire_at"] == "2026-04-10T06:00:00Z"
    assert horarium.verify() == []


def test_after_max_runs_the_schedule_is_deleted(door: Door, horarium: TestService) -> None:
    door.create(scheduleId="one-shot-retry", workflowClass="RetryWorkflow", cronExpression="*/5 * * * *", maxRuns=3)
    horarium.advance(minutes=10)
    assert door.describe("one-shot-retry")["remaining_actions"] == 1
    horarium.advance(minutes=50)
    assert len(door.runs("one-shot-retry")) == 3
    last = door.events("one-shot-retry")[-1]
    assert (last["event_type"], last["payload"]["reason"]) == ("ScheduleDeleted", "max_runs_exhausted")
    door.get("/api/schedules/one-shot-retry", status=404)


# ── backfill ─────────────────────────────────────────────────────────────────────────────────────────

WINDOW = {"start_time": "2026-04-10T00:00:00Z", "end_time": "2026-04-14T00:00:00Z"}
DAYS = [f"2026-04-{day}T02:00:00Z" for day in (10, 11, 12, 13)]
DAILY = {"schedule_id": "daily", "cron_expressions": ["0 2 * * *"], "workflow_type": "sync"}


@begins("2026-04-14T12:00:00Z")
def test_backfill_runs_each_past_occurrence_under_its_own_id(door: Door) -> None:
    door.create(DAILY, overlap_policy="AllowAll")
    done = door.post("/api/schedules/daily/backfill", WINDOW)
    assert done["schedule_id"] == "daily"
    assert [(row["fire_time"], row["workflow_id"]) for row in done["results"]] == [
        (day, f"schedule:daily:backfill:{epoch(day)}") for day in DAYS
    ]
    assert door.nominals("daily") == DAYS


@begins("2026-04-14T12:00:00Z")
def test_a_repeated_backfill_is_harmless(door: Door) -> None:
    """An occurrence has one run for ever: the second request finds them all."""
    door.create(DAILY, overlap_policy="AllowAll")
    door.post("/api/schedules/daily/backfill", WINDOW)
    again = door.post("/api/schedules/daily/backfill", WINDOW)
    assert [row["reason"] for row in again["results"]] == ["already_exists"] * 4
    assert door.nominals("daily") == DAYS


@begins("2026-04-14T12:00:00Z")
@pytest.mark.parametrize("policy", ["BufferOne", "BufferAll", "AllowAll"])
def test_buffer_policies_count_as_allow_all(door: Door, policy: str) -> None:
    door.create(DAILY, overlap_policy=policy)
    done = door.post("/api/schedules/daily/backfill", WINDOW)
    assert [row["outcome"] for row in done["results"]] == ["started"] * 4


@begins("2026-04-14T12:00:00Z")
@runs_stay_open
def test_under_skip_a_window_is_not_skipped_against_itself(door: Door) -> None:
    door.create(DAILY)
    done = door.post("/api/schedules/daily/backfill", WINDOW)
    assert [row["outcome"] for row in done["results"]] == ["started", *["buffered"] * 3]


@begins("2026-04-14T12:00:00Z")
def test_an_override_starts_them_all(door: Door) -> None:
    door.create(DAILY)
    done = door.post("/api/schedules/daily/backfill", {**WINDOW, "overlap_policy": "AllowAll"})
    assert done["fires_started"] == 4


@begins("2026-04-14T12:00:00Z")
def test_backfill_stops_at_max_runs_and_deletes_the_schedule(door: Door) -> None:
    door.create(DAILY, max_runs=2, overlap_policy="AllowAll")
    done = door.post("/api/schedules/daily/backfill", WINDOW)
    assert (done["fires_started"], done["stopped"]) == (2, True)
    assert door.events("daily")[-1]["payload"]["reason"] == "max_runs_exhausted"


@begins("2026-04-14T12:00:00Z")
def test_backfill_knows_no_jitter(door: Door, horarium: TestService) -> None:
    door.create(DAILY, jitter_seconds=300, overlap_policy="AllowAll")
    door.post("/api/schedules/daily/backfill", WINDOW)
    assert [run["nominal"] for run in door.runs("daily")] == DAYS
    assert all(run["due"] == run["nominal"] for run in door.runs("daily"))
