"""What the Durable Workflow contract says about history: event types, payload keys, both streams, tracked skips."""

from __future__ import annotations

from seeds.door import Door, runs_stay_open
from seeds.durable import HOURLY, INVOICES

from horarium.core.document.states import CONTRACT_KEYS, LINEAGE_KEYS, EventType
from horarium.testing import TestService

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
