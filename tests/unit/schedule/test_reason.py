"""Reasons: the closed list, the words of others, and the words for the last dispatch."""

from __future__ import annotations

import pytest

from horarium.core.document.states import REASON_ALIASES, Obstacle, Reason, dispatch_status

CLOSED_LIST = (
    "status_not_triggerable outside_window remaining_actions_exhausted native_scheduler calendar condition_failed "
    "budget_exceeded daily_limit_reached cycle_detected not_the_owner quota_exceeded overlap_policy_skip buffer_full "
    "max_concurrent_reached "
    "superseded missed catchup_cap already_exists target_busy"
)


def test_the_reasons_are_the_closed_list_in_the_order_of_the_guards() -> None:
    assert [reason.value for reason in Reason] == CLOSED_LIST.split()


def test_the_words_of_other_vocabularies_stand_beside_ours() -> None:
    assert REASON_ALIASES == {
        "overlap_policy_skip": "overlap_in_flight",
        "already_exists": "schedule_slot_exists",
        "target_busy": "skipped",
    }


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (None, "dispatched"),
        (Obstacle.PAUSED, "paused"),
        (Obstacle.BROKEN, "validation_failed"),
        (Obstacle.LAUNCH_FAILED, "dispatch_failed"),
        (Reason.CYCLE_DETECTED, "validation_failed"),
        (Reason.OVERLAP_POLICY_SKIP, "skipped_overlap"),
        (Reason.CALENDAR, "skipped_calendar"),
        (Reason.BUFFER_FULL, "skipped_buffer_full"),
        (Reason.STATUS_NOT_TRIGGERABLE, "skipped_status_not_triggerable"),
    ],
)
def test_the_last_dispatch_is_told_in_these_words(cause: Reason | Obstacle | None, status: str) -> None:
    assert dispatch_status(cause) == status


def test_every_other_reason_is_told_by_its_own_name() -> None:
    special = {Reason.CYCLE_DETECTED, Reason.OVERLAP_POLICY_SKIP}
    for reason in set(Reason) - special:
        assert dispatch_status(reason) == f"skipped_{reason.value}"
    assert all(dispatch_status(obstacle) for obstacle in Obstacle)
