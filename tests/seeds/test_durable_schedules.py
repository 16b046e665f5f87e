"""What the Durable Workflow contract says about schedules, example by example: making, managing, routing them.

Where Horarium has settled something differently, the test shows our outcome and names the rule.
"""

from __future__ import annotations

from typing import Any

import pytest
from seeds.door import Door, begins
from seeds.durable import HOURLY, INVOICES, epoch

from horarium.instant import from_rfc3339
from horarium.testing import TestService

DAILY = {"schedule_id": "daily", "cron_expressions": ["0 2 * * *"], "workflow_type": "sync"}

# ── creating ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_example_is_created_as_it_is_printed(door: Door) -> None:
    door.create(INVOICES)
    found = door.describe("daily-invoice-sync")
    assert {name: found[name] for name in ("schedule_id", "namespace", "status", "overlap_policy", "note")} == {
        "schedule_id": "daily-invoice-sync",
        "namespace": "default",
        "status": "active",
        "overlap_policy": "skip",
        "note": "Runs every night at 2 AM ET.",
    }
    assert found["spec"] == {"cron_expressions": ["0 2 * * *"], "timezone": "America/New_York"}
    assert (found["fires_count"], found["jitter_seconds"], found["last_fired_at"]) == (0, 0, None)
    assert found["next_fire_at"] == "2026-04-10T06:00:00Z"
    assert found["action"]["workflow_class"] == "InvoiceSyncWorkflow"


def test_labels_memo_search_attributes_and_arguments_are_on_every_run(door: Door, horarium: TestService) -> None:
    door.create(INVOICES)
    horarium.advance(days=1)
    [run] = door.whole_runs("daily-invoice-sync")
    assert (run["labels"], run["memo"]) == ({"team": "billing"}, {"origin": "scheduled"})
    assert (run["search_attributes"], run["inputs"]) == ({"tenant_id": "42"}, ["nightly"])


def test_a_run_has_an_instance_id_made_of_schedule_and_time(door: Door, horarium: TestService) -> None:
    door.create(INVOICES)
    horarium.advance(days=1)
    [run] = door.runs("daily-invoice-sync")
    expected = f"schedule:daily-invoice-sync:{epoch('2026-04-10T06:00:00Z')}"
    assert run["workflow_instance_id"] == expected
    assert door.describe("daily-invoice-sync")["latest_workflow_instance_id"] == expected


def test_every_parameter_has_the_default_of_the_table(door: Door) -> None:
    door.create(HOURLY)
    defaults = {
        "overlap_policy": "skip",
        "labels": {},
        "memo": {},
        "search_attributes": {},
        "jitter_seconds": 0,
        "max_runs": None,
        "note": None,
        "namespace": "default",
    }
    found = door.describe("hourly")
    assert {name: found[name] for name in defaults} == defaults


def test_without_a_zone_it_is_utc_and_without_routing_there_is_none(door: Door) -> None:
    door.create(HOURLY)
    found = door.describe("hourly")
    assert found["next_fire_times"][0] == "2026-04-10T01:00:00Z"
    assert found["action"].keys() & {"connection", "queue", "task_queue"} == set()


@pytest.mark.parametrize("missing", ["cron_expressions", "workflow_type"])
def test_a_required_parameter_that_is_missing_is_refused(door: Door, missing: str) -> None:
    body = {name: value for name, value in HOURLY.items() if name != missing}
    assert door.post("/api/schedules", body, status=422)["reason"] == "validation_failed"


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────


@begins("2026-04-10T00:10:00Z")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"intervals": [{"every": "PT30M"}]}, ["00:30", "01:00", "01:30", "02:00", "02:30"]),
        ({"intervals": [{"every": "PT1H", "offset": "PT5M"}]}, ["01:05", "02:05", "03:05", "04:05", "05:05"]),
        # Noon in Chicago is 17:00 UTC in April; the intervals stand on the grid of the Unix epoch in UTC.
        (
            {
                "cron_expressions": ["0 12 * * *"],
                "intervals": [{"every": "PT6H"}],
                "timezone": "America/Chicago",
            },
            ["06:00", "12:00", "17:00", "18:00", "00:00"],
        ),
    ],
    ids=["every half hour", "with an offset", "cron and interval together"],
)
def test_intervals_fire_on_their_grid(door: Door, spec: dict[str, Any], expected: list[str]) -> None:
    action = {
        "workflow_type": "health-check",
        "workflow_class": "HealthCheckWorkflow",
        "input": {"region": "us-east-1"},
    }
    door.create(schedule_id="by-spec", spec=spec, action=action)
    assert [fire[11:16] for fire in door.describe("by-spec")["next_fire_times"]] == expected


def test_a_spec_takes_all_the_lifecycle_parameters(door: Door) -> None:
    door.create(
        schedule_id="all",
        spec={"intervals": [{"every": "P1D"}]},
        action={"workflow_type": "report"},
        overlapPolicy="BufferOne",
        jitterSeconds=30,
        maxRuns=5,
        connection="redis",
        queue="slow",
    )
    found = door.describe("all")
    assert (found["overlap_policy"], found["jitter_seconds"], found["max_runs"]) == ("buffer_one", 30, 5)
    assert (found["action"]["connection"], found["action"]["task_queue"]) == ("redis", "slow")


# ── managing ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_schedule_does_not_trigger_and_resumes_from_now(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    door.post("/api/schedules/hourly/pause", {"note": "maintenance"})
    horarium.advance(hours=5, minutes=20)
    assert door.runs("hourly") == []
    resumed = door.post("/api/schedules/hourly/resume")
    assert resumed["next_fire_at"] == "2026-04-10T06:00:00Z"
    horarium.advance(hours=1)
    assert door.nominals("hourly") == ["2026-04-10T06:00:00Z"]


def test_the_update_example_moves_the_next_fire(door: Door) -> None:
    door.create(INVOICES)
    change = {
        "cronExpression": "30 3 * * *",
        "timezone": "America/Chicago",
        "overlapPolicy": "AllowAll",
        "notes": "Moved to 3:30 AM CT.",
    }
    assert door.patch("/api/schedules/daily-invoice-sync", change)["next_fire_at"] == "2026-04-10T08:30:00Z"
    found = door.describe("daily-invoice-sync")
    assert (found["overlap_policy"], found["note"]) == ("allow_all", "Moved to 3:30 AM CT.")
    assert found["spec"] == {"cron_expressions": ["30 3 * * *"], "timezone": "America/Chicago"}


def test_deleting_is_soft(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    horarium.advance(hours=1)
    door.delete("/api/schedules/hourly")
    horarium.advance(hours=2)
    assert len(door.runs("hourly")) == 1
    last = door.events("hourly")[-1]
    assert (last["event_type"], last["payload"]["deleted_at"]) == ("ScheduleDeleted", "2026-04-10T01:00:00Z")


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger", "backfill"])
def test_a_deleted_schedule_cannot_be_operated(door: Door, verb: str) -> None:
    door.create(HOURLY)
    door.delete("/api/schedules/hourly")
    window = {"start_time": "2026-04-01T00:00:00Z", "end_time": "2026-04-02T00:00:00Z"}
    body = window if verb == "backfill" else {}
    assert door.post(f"/api/schedules/hourly/{verb}", body, status=404)["reason"] == "schedule_not_found"


def test_a_deleted_schedule_cannot_be_updated(door: Door) -> None:
    door.create(HOURLY)
    door.delete("/api/schedules/hourly")
    assert door.patch("/api/schedules/hourly", {"note": "?"}, status=404)["reason"] == "schedule_not_found"


def test_an_unknown_id_finds_nothing(door: Door) -> None:
    assert door.get("/api/schedules/none", status=404)["reason"] == "schedule_not_found"


# ── routing and jitter ───────────────────────────────────────────────────────────────────────────────


def test_queue_routing_is_echoed_and_goes_with_every_run(door: Door, horarium: TestService) -> None:
    door.create(
        scheduleId="priority-sync",
        workflowClass="InvoiceSyncWorkflow",
        cronExpression="0 * * * *",
        connection="redis",
        queue="high-priority",
    )
    horarium.advance(hours=1)
    action = door.describe("priority-sync")["action"]
    assert (action["connection"], action["queue"]) == ("redis", "high-priority")
    assert [run["task_queue"] for run in door.runs("priority-sync")] == ["high-priority"]
    [request] = horarium.launcher.deliveries
    assert (request.action.connection, request.action.queue) == ("redis", "high-priority")


def test_jitter_delays_by_at_most_its_seconds(door: Door, horarium: TestService) -> None:
    door.create(scheduleId="hourly-report", workflowClass="Report", cronExpression="0 * * * *", jitterSeconds=300)
    horarium.advance(days=1)
    delays = [epoch(run["due"]) - epoch(run["nominal"]) for run in door.runs("hourly-report")]
    assert len(delays) >= 23
    assert all(0 <= delay <= 300 for delay in delays)
    # Not re-rolled at each calculation, but a hash of schedule and occurrence: the same after any restart.
    assert len(set(delays)) > 10


def test_the_occurrence_time_is_the_nominal_one(door: Door, horarium: TestService) -> None:
    """The contract records the jittered time; here `occurrence_time` names the occurrence and `due` stands beside."""
    door.create(scheduleId="hourly-report", workflowClass="Report", cronExpression="0 * * * *", jitterSeconds=300)
    horarium.advance(hours=2)
    [first, *_] = door.events("hourly-report", "ScheduleTriggered")
    assert first["payload"]["occurrence_time"] == "2026-04-10T01:00:00Z"
    assert from_rfc3339(first["payload"]["due"]) > from_rfc3339(first["payload"]["occurrence_time"])


def test_without_jitter_it_fires_on_the_minute(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    horarium.advance(hours=3)
    assert all(run["due"] == run["nominal"] for run in door.runs("hourly"))


# ── namespaces ───────────────────────────────────────────────────────────────────────────────────────


def test_an_id_is_unique_within_its_namespace_only(horarium: TestService, door: Door) -> None:
    door.post("/api/namespaces", {"name": "billing"}, status=201)
    billing = Door(horarium, "billing")
    door.create(DAILY)
    billing.create(DAILY, note="theirs")
    assert (door.describe("daily")["note"], billing.describe("daily")["note"]) == (None, "theirs")
    assert billing.describe("daily")["namespace"] == "billing"
    assert door.post("/api/schedules", DAILY, status=409)["reason"] == "schedule_already_exists"


def test_lists_and_histories_show_one_namespace_only(horarium: TestService, door: Door) -> None:
    door.post("/api/namespaces", {"name": "billing"}, status=201)
    billing = Door(horarium, "billing")
    billing.create(DAILY)
    assert door.get("/api/schedules")["schedules"] == []
    door.get("/api/schedules/daily/history", status=404)
    assert [event["namespace"] for event in billing.events("daily")] == ["billing"]
