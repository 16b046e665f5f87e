"""Events: the payload keys of the contract, our additions, and the words of a run's stream."""

from __future__ import annotations

import pytest

from horarium.core.document.states import (
    ADDED_KEYS,
    CONTRACT_KEYS,
    FINAL,
    LINEAGE_KEYS,
    PAYLOAD_KEYS,
    CommandContext,
    EventType,
    RecordedOutcome,
    RunEventType,
    RunState,
    final_event,
    make_lineage_payload,
    make_payload,
)

# From the published contract of the Durable Workflow schedule history.
PUBLISHED = {
    "ScheduleCreated": "spec action overlap_policy next_fire_at command_context",
    "SchedulePaused": "reason paused_at command_context",
    "ScheduleResumed": "next_fire_at command_context",
    "ScheduleUpdated": "changed_fields spec action overlap_policy next_fire_at command_context",
    "ScheduleTriggered": "workflow_instance_id workflow_run_id outcome effective_overlap_policy trigger_number "
    "occurrence_time command_context",
    "ScheduleTriggerSkipped": "reason skipped_trigger_count last_skipped_at command_context",
    "ScheduleDeleted": "reason deleted_at command_context",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_contract_keys_are_the_published_ones(name: str) -> None:
    assert CONTRACT_KEYS[EventType(name)] == set(PUBLISHED[name].split())


def test_only_the_published_events_have_contract_keys() -> None:
    assert {kind.value for kind in CONTRACT_KEYS} == set(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ScheduleMissed", "first last count reason"),
        ("ScheduleBuffered", "occurrence_time buffer_depth"),
        ("ScheduleBroken", "error"),
        ("ScheduleTriggerSkipped", "occurrence_time reason_alias detail"),
        ("ScheduleTriggered", "due covers rotation_index_used from_buffer"),
        ("ScheduleApprovalBypassAttempted", "workflow_run_id attempted"),
    ],
)
def test_our_additions_are_declared_apart(name: str, keys: str) -> None:
    kind = EventType(name)
    assert set(keys.split()) <= ADDED_KEYS[kind]
    assert ADDED_KEYS[kind].isdisjoint(CONTRACT_KEYS.get(kind, frozenset()))


def test_every_event_type_has_keys_and_a_place_for_its_caller() -> None:
    assert set(PAYLOAD_KEYS) == set(ADDED_KEYS) == set(EventType)
    for kind in EventType:
        assert PAYLOAD_KEYS[kind] == CONTRACT_KEYS.get(kind, frozenset()) | ADDED_KEYS[kind]
        assert "command_context" in PAYLOAD_KEYS[kind]


@pytest.mark.parametrize("kind", EventType, ids=lambda kind: kind.value)
def test_a_payload_takes_every_key_of_its_type_and_no_other(kind: EventType) -> None:
    values = dict.fromkeys(PAYLOAD_KEYS[kind], 1)
    assert make_payload(kind, **values) == values
    with pytest.raises(ValueError, match=f"{kind} has no payload key colour, shape"):
        make_payload(kind, **values, shape=1, colour=None)


def test_a_key_without_a_value_is_left_out_and_an_empty_value_is_kept() -> None:
    payload = make_payload(EventType.TRIGGERED, due=None, rotation_index_used=0, from_buffer=False, covers={})
    assert payload == {"rotation_index_used": 0, "from_buffer": False, "covers": {}}


def test_a_command_context_is_written_without_what_is_unknown() -> None:
    context = CommandContext(principal="ada", request_id="r-1", reason="")
    assert context.to_payload() == {"principal": "ada", "request_id": "r-1", "reason": ""}
    assert make_payload(EventType.RESUMED, command_context=context) == {"command_context": context.to_payload()}
    whole = CommandContext("ada", "r-1", "cli", "maintenance")
    assert set(whole.to_payload()) == {"principal", "request_id", "source", "reason"}


def test_an_event_without_a_caller_has_no_command_context() -> None:
    assert make_payload(EventType.RESUMED, command_context=CommandContext()) == {}
    assert make_payload(EventType.RESUMED, command_context=None) == {}


def test_the_lineage_event_of_a_run_has_its_own_keys() -> None:
    published = "schedule_id schedule_ulid cron_expression timezone overlap_policy trigger_number occurrence_time"
    assert set(published.split()) == LINEAGE_KEYS
    assert make_lineage_payload(schedule_id="nightly", cron_expression=None) == {"schedule_id": "nightly"}
    with pytest.raises(ValueError, match="ScheduleTriggered on a run has no payload key outcome"):
        make_lineage_payload(outcome="scheduled")


def test_a_trigger_is_scheduled_drained_or_backfilled() -> None:
    assert [outcome.value for outcome in RecordedOutcome] == ["scheduled", "drained", "backfilled"]


def test_the_stream_of_a_run_has_the_words_that_were_promised() -> None:
    promised = (
        "ScheduleTriggered run.created run.approved run.started node.queued node.started node.retried "
        "node.completed node.failed node.skipped node.blocked run.completed run.failed run.cancelled "
        "run.timed_out approval_bypass_attempt"
    )
    assert set(promised.split()) <= {kind.value for kind in RunEventType}


@pytest.mark.parametrize("state", RunState, ids=lambda state: state.value)
def test_every_final_state_and_no_other_ends_a_stream(state: RunState) -> None:
    if state in FINAL:
        word = "completed" if state is RunState.SUCCEEDED else state.value
        assert final_event(state, is_step=False) == f"run.{word}"
        assert final_event(state, is_step=True) == f"node.{word}"
    else:
        with pytest.raises(ValueError, match="has not ended"):
            final_event(state, is_step=False)
