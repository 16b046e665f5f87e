"""What became of a schedule's last occurrence, in one word."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.decision.statuses import EMPTY_RESPONSE, LastStatus, empties_after, last_status, status_of_end
from horarium.core.document.states import FINAL, RunState

ENDS = {
    RunState.SUCCEEDED: "success",
    RunState.FAILED: "error",
    RunState.TIMED_OUT: "error",
    RunState.CANCELLED: "error",
    RunState.TERMINATED: "error",
    RunState.LAUNCH_FAILED: "error",
    RunState.UNKNOWN: "error",
    RunState.REJECTED: "skipped",
    RunState.EXPIRED: "skipped",
    RunState.SKIPPED: "skipped",
}


def test_every_end_has_a_row() -> None:
    assert set(ENDS) == FINAL


@pytest.mark.parametrize("state", ENDS, ids=str)
def test_an_end_is_one_word(state: RunState) -> None:
    assert status_of_end(state) == ENDS[state]


# fmt: off
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing yet": ({}, ""),
    "a success": ({"last_state": "succeeded", "last_completed_at": 5}, "success"),
    "a success after a skip": ({"last_state": "succeeded", "last_completed_at": 5, "last_skipped_at": 4}, "success"),
    "a skip after a success": ({"last_state": "succeeded", "last_completed_at": 5, "last_skipped_at": 6}, "skipped"),
    "a skip and nothing else": ({"last_skipped_at": 6}, "skipped"),
    "two empty answers": ({"last_state": "failed", "last_completed_at": 5, "empty_in_a_row": 2}, "error"),
    "three empty answers": ({"last_state": "failed", "last_completed_at": 5, "empty_in_a_row": 3}, "stale"),
    "a skip after three": ({"last_completed_at": 5, "last_skipped_at": 6, "empty_in_a_row": 3}, "skipped"),
    "a busy agent after three": (
        {"last_state": "skipped", "last_completed_at": 7, "last_skipped_at": 6, "empty_in_a_row": 3}, "skipped"),
    "cancelled after three": ({"last_state": "cancelled", "last_completed_at": 7, "empty_in_a_row": 3}, "stale"),
    "an end of before this was kept": ({"last_completed_at": 5}, "success"),
    "a failure of before": ({"last_completed_at": 5, "failures_in_a_row": 1}, "error"),
}
# fmt: on
NOTHING: dict[str, Any] = {
    "last_state": None,
    "last_completed_at": None,
    "last_skipped_at": None,
    "failures_in_a_row": 0,
    "empty_in_a_row": 0,
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_occurrence_is_one_word(name: str) -> None:
    known, expected = CASES[name]
    assert last_status(**(NOTHING | known)) is LastStatus(expected)


AFTER_TWO = {
    (RunState.FAILED, EMPTY_RESPONSE): 3,
    (RunState.FAILED, "agent_failed"): 0,
    (RunState.SUCCEEDED, None): 0,
    (RunState.FAILED, None): 2,
    (RunState.TIMED_OUT, "timeout"): 2,
    (RunState.LAUNCH_FAILED, "unreachable"): 2,
    (RunState.UNKNOWN, "unknown"): 2,
    (RunState.SKIPPED, None): 2,
    (RunState.CANCELLED, EMPTY_RESPONSE): 2,
}


@pytest.mark.parametrize(("state", "error_class"), AFTER_TWO)
def test_only_what_the_agent_said_moves_the_row_of_empty_answers(state: RunState, error_class: str | None) -> None:
    assert empties_after(2, state, error_class) == AFTER_TWO[state, error_class]
