"""Runs: the table of transitions as it is written down, and the names a run is known by."""

from __future__ import annotations

import hashlib

import pytest

from horarium.core.document.states import (
    FINAL,
    TRANSITIONS,
    Delivery,
    Origin,
    PublicStatus,
    RunState,
    attempt_number,
    begun_key,
    check_transition,
    delivery_key,
    instance_id,
    is_final,
    occurrence_key,
    public_status,
    result_status,
    state_after_termination,
    step_key,
)
from horarium.errors import InvalidTransition
from horarium.instant import SECOND, from_rfc3339

FINAL_NAMES = "succeeded failed timed_out cancelled terminated rejected expired skipped launch_failed unknown"

# Written out again on purpose, from the text of the contract and not from the code.
TABLE = {
    "held": "ready awaiting_approval cancelled",
    "awaiting_approval": "ready rejected expired cancelled",
    "ready": "launching cancelled",
    "launching": f"queued running ready awaiting_approval {FINAL_NAMES}",
    "queued": f"running ready {FINAL_NAMES}",
    "running": f"ready awaiting_approval {FINAL_NAMES}",
} | dict.fromkeys(FINAL_NAMES.split(), "")


@pytest.mark.parametrize("old", RunState, ids=lambda state: state.value)
def test_a_run_moves_only_as_the_table_says(old: RunState) -> None:
    for new in RunState:
        if new.value in TABLE[old.value].split():
            check_transition(old, new)
        else:
            with pytest.raises(InvalidTransition, match=f"from {old} to {new}"):
                check_transition(old, new)


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(RunState)
    assert set(TABLE) == {state.value for state in RunState}


def test_the_final_states_are_those_that_nothing_leaves() -> None:
    assert {state.value for state in FINAL} == set(FINAL_NAMES.split())
    assert {state for state in RunState if not TRANSITIONS[state]} == FINAL
    assert [is_final(state) for state in (RunState.UNKNOWN, RunState.RUNNING)] == [True, False]


def test_what_is_held_or_awaits_approval_cannot_be_launched() -> None:
    for state in (RunState.HELD, RunState.AWAITING_APPROVAL):
        assert not TRANSITIONS[state] & {RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED}


@pytest.mark.parametrize("state", RunState, ids=lambda state: state.value)
def test_termination_is_a_move_that_the_table_allows(state: RunState) -> None:
    after = state_after_termination(state)
    assert after in FINAL
    if state in FINAL:
        assert after is state
    else:
        check_transition(state, after)


@pytest.mark.parametrize(
    ("state", "after"),
    [
        ("held", "cancelled"),
        ("awaiting_approval", "cancelled"),
        ("ready", "cancelled"),
        ("launching", "terminated"),
        ("queued", "terminated"),
        ("running", "terminated"),
    ],
)
def test_only_what_was_handed_out_is_terminated(state: str, after: str) -> None:
    assert state_after_termination(RunState(state)) == after


@pytest.mark.parametrize(
    ("status", "states"),
    [
        ("ENQUEUED", "held awaiting_approval ready launching queued"),
        ("STARTED", "running"),
        ("SUCCESS", "succeeded"),
        ("FAILED", "failed timed_out cancelled terminated rejected expired launch_failed unknown"),
        ("SKIPPED", "skipped"),
    ],
)
def test_the_public_words_cover_these_states(status: str, states: str) -> None:
    assert {state for state in RunState if public_status(state) == status} == set(states.split())


def test_every_public_word_is_used() -> None:
    assert {public_status(state) for state in RunState} == set(PublicStatus)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_result_is_completed_or_named_as_its_state(state: RunState) -> None:
    assert result_status(state) == ("completed" if state == "succeeded" else state.value)


NOMINAL = from_rfc3339("2026-04-14T00:00:00Z")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin.SCHEDULED, "schedule:nightly:1776124800"),
        (Origin.BACKFILL, "schedule:nightly:backfill:1776124800"),
        (Origin.MANUAL, "schedule:nightly:manual:01RUN"),
        (Origin.API, "run:01RUN"),
        (Origin.STEP, "run:01RUN"),
    ],
)
def test_an_instance_is_named_by_its_occurrence_or_by_its_run(origin: Origin, expected: str) -> None:
    assert instance_id("nightly", origin, NOMINAL, "01RUN") == expected


def test_every_origin_gives_an_instance_id() -> None:
    assert all(instance_id("nightly", origin, NOMINAL, "01RUN") for origin in Origin)
    assert {origin.value for origin in Origin} == {"scheduled", "manual", "backfill", "api", "step"}


def test_the_key_of_an_occurrence_is_the_hash_of_schedule_and_second() -> None:
    assert occurrence_key("01UID", NOMINAL) == hashlib.sha256(b"01UID:1776124800").hexdigest()
    assert occurrence_key("01UID", NOMINAL) != occurrence_key("01UID", NOMINAL + SECOND)
    assert occurrence_key("01UID", NOMINAL) != occurrence_key("02UID", NOMINAL)


def test_a_redelivery_repeats_the_key_and_a_retry_numbers_it() -> None:
    assert [delivery_key("abc", attempt) for attempt in (0, 1, 2)] == ["abc", "abc:1", "abc:2"]
    with pytest.raises(ValueError, match="cannot be -1"):
        delivery_key("abc", -1)


def test_what_is_sent_after_a_gate_is_another_delivery() -> None:
    assert [delivery_key("abc", 1, passed) for passed in (0, 1, 2)] == ["abc:1", "abc:1:gate1", "abc:1:gate2"]


@pytest.mark.parametrize("attempt", [0, 2])
def test_what_goes_on_after_a_gate_names_what_began_it(attempt):
    begun = delivery_key("abc", attempt)
    assert [begun_key(delivery_key("abc", attempt, passed)) for passed in (0, 1, 12)] == [begun] * 3


def test_a_step_is_named_by_its_root_and_its_place() -> None:
    """`printf 01ROOT:sub/c1 | sha256sum`"""
    key = "c11978bd3742ed3d0fbac5c61e8ccec2c02976de38da24b9b2d4ed219f676c7c"
    assert step_key("01ROOT", "sub/c1") == key
    assert step_key("01ROOT", "sub/c1", fallback=True) == f"{key}:fallback"


# The state, how many failures are known, and which attempt that is to a person.
ATTEMPTS = [
    ("ready", 0, 1),
    ("running", 0, 1),
    ("succeeded", 0, 1),
    ("failed", 0, 1),
    ("failed", 1, 1),
    ("timed_out", 1, 1),
    ("ready", 1, 2),
    ("succeeded", 1, 2),
    ("cancelled", 1, 2),
    ("failed", 2, 2),
]


@pytest.mark.parametrize(("state", "attempt", "number"), ATTEMPTS)
def test_people_count_attempts_from_1(state: str, attempt: int, number: int) -> None:
    assert attempt_number(state, attempt) == number


def test_delivery_is_at_least_or_at_most_once_and_never_exactly() -> None:
    assert [delivery.value for delivery in Delivery] == ["at_least_once", "at_most_once"]
