"""The published client reads the audit stream: page by page, all of it, and after the schedule is gone."""

from __future__ import annotations

import pytest
from contract.documents import NIGHTLY, nightly
from contract.published import ClientError, Published

LIFE = [
    "ScheduleCreated",
    "SchedulePaused",
    "ScheduleResumed",
    "ScheduleUpdated",
    "ScheduleTriggered",
    "ScheduleTriggerSkipped",
    "ScheduleDeleted",
]


@pytest.fixture
def lived(published: Published) -> Published:
    """A handle of a schedule whose life is over."""
    published.create_schedule(**nightly())
    handle = published.of("nightly")
    handle.pause(note="audit")
    handle.resume(note="done")
    handle.update(note="renamed", overlap_policy="skip", jitter_seconds=5)
    handle.trigger()
    handle.trigger()
    handle.delete()
    return handle


def test_a_whole_life_is_numbered_without_gaps(lived: Published) -> None:
    page = lived.history()
    assert [event["event_type"] for event in page["events"]] == LIFE
    assert [event["sequence"] for event in page["events"]] == list(range(1, 8))
    assert (page["schedule_id"], page["has_more"], page["next_cursor"]) == ("nightly", False, None)
    assert page["namespace"] == lived.options["namespace"]


def test_every_event_tells_when_and_has_an_id_of_its_own(lived: Published) -> None:
    events = lived.history()["events"]
    assert len({event["id"] for event in events}) == len(events)
    assert all(event["recorded_at"] for event in events)


def test_the_payloads_have_the_keys_of_the_contract(lived: Published) -> None:
    payloads = {event["event_type"]: event["payload"] for event in lived.history()["events"]}
    created = payloads["ScheduleCreated"]
    assert created["spec"] == NIGHTLY
    assert {"spec", "action", "overlap_policy", "next_fire_at", "command_context"} <= created.keys()
    assert (payloads["SchedulePaused"]["reason"], "paused_at" in payloads["SchedulePaused"]) == ("audit", True)
    assert "next_fire_at" in payloads["ScheduleResumed"]
    assert payloads["ScheduleResumed"]["command_context"]["reason"] == "done"
    assert {"changed_fields", "spec", "action", "overlap_policy", "next_fire_at"} <= payloads["ScheduleUpdated"].keys()
    assert {"reason", "skipped_trigger_count", "last_skipped_at"} <= payloads["ScheduleTriggerSkipped"].keys()
    assert "deleted_at" in payloads["ScheduleDeleted"]
    assert all(payload["command_context"]["source"] == "api" for payload in payloads.values())


def test_a_triggered_event_names_its_run(lived: Published) -> None:
    [event] = [each for each in lived.history()["events"] if each["event_type"] == "ScheduleTriggered"]
    payload = event["payload"]
    assert event["workflow_instance_id"] == payload["workflow_instance_id"]
    assert event["workflow_run_id"] == payload["workflow_run_id"]
    assert {"outcome", "effective_overlap_policy", "trigger_number", "occurrence_time"} <= payload.keys()


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500, 100_000])
def test_iterating_ends_and_loses_nothing(lived: Published, limit: int) -> None:
    assert [event["event_type"] for event in lived.iter_history(limit=limit)] == LIFE


def test_a_cursor_goes_on_where_the_page_ended(lived: Published) -> None:
    first = lived.history(limit=3)
    assert (first["has_more"], first["next_cursor"]) == (True, 3)
    rest = lived.history(after_sequence=first["next_cursor"])
    assert [event["sequence"] for event in rest["events"]] == [4, 5, 6, 7]
    assert lived.history(after_sequence=7)["events"] == []


def test_a_schedule_that_never_was_has_no_history(published: Published) -> None:
    with pytest.raises(ClientError) as refused:
        published.get_schedule_history(schedule_id="ghost")
    assert (refused.value.type, refused.value.schedule_id) == ("ScheduleNotFound", "ghost")
