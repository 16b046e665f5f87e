"""What the Durable Workflow contract says about schedules, example by example.

Where Horarium has settled something differently, the test shows our outcome and names the rule.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from seeds.door import Door, begins, runs_stay_open

from horarium.cli.main import main
from horarium.instant import from_rfc3339
from horarium.schedule.event import CONTRACT_KEYS, LINEAGE_KEYS, EventType
from horarium.testing import TestService, service

INVOICES = {
    "scheduleId": "daily-invoice-sync",
    "workflowClass": "InvoiceSyncWorkflow",
    "cronExpression": "0 2 * * *",
    "arguments": ["nightly"],
    "timezone": "America/New_York",
    "overlapPolicy": "Skip",
    "labels": {"team": "billing"},
    "memo": {"origin": "scheduled"},
    "searchAttributes": {"tenant_id": "42"},
    "notes": "Runs every night at 2 AM ET.",
}
HOURLY = {"schedule_id": "hourly", "cron_expressions": ["0 * * * *"], "workflow_type": "sync"}


def epoch(moment: str) -> int:
    return from_rfc3339(moment) // 1_000_000


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
    [run] = door.runs("daily-invoice-sync")
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
def test_skip_applies_to_each_backfilled_occurrence(door: Door) -> None:
    door.create(DAILY)
    done = door.post("/api/schedules/daily/backfill", WINDOW)
    assert [row.get("reason") for row in done["results"]] == [None, *["overlap_policy_skip"] * 3]


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
    assert first["payload"]["due"] > first["payload"]["occurrence_time"]


def test_without_jitter_it_fires_on_the_minute(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    horarium.advance(hours=3)
    assert all(run["due"] == run["nominal"] for run in door.runs("hourly"))


# ── history ──────────────────────────────────────────────────────────────────────────────────────────

PAYLOADS = {
    "ScheduleCreated": "spec action overlap_policy next_fire_at command_context",
    "SchedulePaused": "reason paused_at command_context",
    "ScheduleResumed": "next_fire_at command_context",
    "ScheduleUpdated": "changed_fields spec action overlap_policy next_fire_at command_context",
    "ScheduleTriggered": "workflow_instance_id workflow_run_id outcome effective_overlap_policy trigger_number "
    "occurrence_time command_context",
    "ScheduleTriggerSkipped": "reason skipped_trigger_count last_skipped_at command_context",
    "ScheduleDeleted": "reason deleted_at command_context",
}


def live_a_whole_life(door: Door) -> None:
    door.create(HOURLY)
    door.post("/api/schedules/hourly/trigger", {"reason": "try it"})
    door.post("/api/schedules/hourly/trigger", {"reason": "again"})
    door.post("/api/schedules/hourly/pause", {"note": "maintenance"})
    door.post("/api/schedules/hourly/resume", {"note": "done"})
    door.patch("/api/schedules/hourly", {"cron_expressions": ["30 * * * *"]})
    door.delete("/api/schedules/hourly")


def test_the_registry_has_the_payload_keys_of_the_table() -> None:
    assert {kind.value: set(keys) for kind, keys in CONTRACT_KEYS.items()} == {
        kind: set(keys.split()) for kind, keys in PAYLOADS.items()
    }


@runs_stay_open
def test_every_lifecycle_event_is_recorded_with_its_payload_keys(door: Door) -> None:
    live_a_whole_life(door)
    found = {event["event_type"]: event["payload"].keys() for event in door.events("hourly")}
    # `reason` of a deletion is that of max_runs: an explicit one has none, and a key without a value is left out.
    expected = {kind: set(keys.split()) for kind, keys in PAYLOADS.items()}
    expected["ScheduleDeleted"].remove("reason")
    assert {kind: keys - found[kind] for kind, keys in expected.items()} == {kind: set() for kind in PAYLOADS}


@runs_stay_open
def test_the_audit_stream_is_numbered_from_one_without_gaps(door: Door) -> None:
    live_a_whole_life(door)
    events = door.events("hourly")
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event_type"] == "ScheduleCreated"
    assert {event["event_type"] for event in events} == PAYLOADS.keys()


def test_the_context_of_a_command_says_who_asked_how_and_why(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    door.post("/api/schedules/hourly/pause", {"note": "maintenance"})
    [paused] = door.events("hourly", "SchedulePaused")
    context = paused["payload"]["command_context"]
    assert (context["principal"], context["source"], context["reason"]) == ("admin", "api", "maintenance")
    assert context["request_id"]


def test_an_event_that_nobody_asked_for_has_no_context(door: Door, horarium: TestService) -> None:
    door.create(HOURLY)
    horarium.advance(hours=1)
    [fired] = door.events("hourly", "ScheduleTriggered")
    assert "command_context" not in fired["payload"]


def test_the_run_has_the_lineage_event_with_its_keys(door: Door, horarium: TestService) -> None:
    door.create(INVOICES)
    horarium.advance(days=1)
    [run] = door.runs("daily-invoice-sync")
    [first, *_] = door.get(f"/api/runs/{run['run_id']}/events")["events"]
    assert first["event_type"] == EventType.TRIGGERED
    assert (
        first["payload"].keys()
        == LINEAGE_KEYS
        == {
            "schedule_id",
            "schedule_ulid",
            "cron_expression",
            "timezone",
            "overlap_policy",
            "trigger_number",
            "occurrence_time",
        }
    )
    assert (first["payload"]["trigger_number"], first["payload"]["cron_expression"]) == (1, "0 2 * * *")


def test_history_is_read_in_pages_of_one_to_five_hundred(door: Door, horarium: TestService) -> None:
    door.create(schedule_id="often", cron_expressions=["* * * * *"], workflow_type="x")
    horarium.advance(minutes=105)
    usual = door.get("/api/schedules/often/history")
    assert (len(usual["events"]), usual["has_more"], usual["next_cursor"]) == (100, True, 100)
    rest = door.get("/api/schedules/often/history", limit=501, after_sequence=usual["next_cursor"])
    assert (rest["events"][0]["sequence"], rest["has_more"]) == (101, False)
    assert len(door.get("/api/schedules/often/history", limit=1)["events"]) == 1


def test_history_can_be_read_after_deletion(door: Door) -> None:
    door.create(HOURLY)
    door.delete("/api/schedules/hourly")
    assert [event["event_type"] for event in door.events("hourly")] == ["ScheduleCreated", "ScheduleDeleted"]


# ── skip tracking ────────────────────────────────────────────────────────────────────────────────────


@runs_stay_open
def test_skips_are_counted_with_their_last_reason_and_time(door: Door, horarium: TestService) -> None:
    door.create(HOURLY, timeout_seconds=86_400)
    horarium.advance(hours=3, minutes=15)
    found = door.describe("hourly")
    assert (found["last_skip_reason"], found["skipped_trigger_count"]) == ("overlap_policy_skip", 2)
    assert found["last_skipped_at"] == "2026-04-10T03:00:00Z"


def test_a_trigger_of_a_paused_schedule_is_a_tracked_skip(door: Door) -> None:
    door.create(HOURLY, paused=True)
    assert door.post("/api/schedules/hourly/trigger")["reason"] == "status_not_triggerable"
    found = door.describe("hourly")
    assert (found["last_skip_reason"], found["skipped_trigger_count"]) == ("status_not_triggerable", 1)


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
