"""What is told of the last that happened to a schedule of a workspace."""

from __future__ import annotations

import pytest

from horarium.decision.workspace_status import (
    NOTHING,
    STALE_AFTER,
    Ended,
    Last,
    LastStatus,
    NotRun,
    RunStatus,
    error_of,
    last_of,
    run_status,
)
from horarium.schedule.run import FINAL, RunState

SKIP = NotRun(5, "overlap_policy_skip")
SKIPPED = Last(LastStatus.SKIPPED, "skipped: overlap_policy_skip", 5)


@pytest.mark.parametrize(
    ("ended", "not_run", "empties", "last"),
    [
        (None, None, 0, NOTHING),
        (None, SKIP, 0, SKIPPED),
        (Ended(4, RunState.SUCCEEDED), SKIP, 0, SKIPPED),
        (Ended(5, RunState.SUCCEEDED), SKIP, 0, SKIPPED),
        (Ended(6, RunState.SUCCEEDED), SKIP, 0, Last(LastStatus.SUCCESS, "", 6)),
        (Ended(6, RunState.SUCCEEDED, "old"), None, 0, Last(LastStatus.SUCCESS, "", 6)),
        (Ended(6, RunState.FAILED, "it broke", "c"), None, 0, Last(LastStatus.ERROR, "it broke", 6)),
        (Ended(6, RunState.TIMED_OUT), None, 0, Last(LastStatus.ERROR, "timed out", 6)),
        (Ended(6, RunState.SKIPPED, None, "target_busy"), None, 0, Last(LastStatus.SKIPPED, "skipped: target_busy", 6)),
        (Ended(6, RunState.FAILED, "empty"), None, STALE_AFTER - 1, Last(LastStatus.ERROR, "empty", 6)),
    ],
    ids=str,
)
def test_the_last_that_happened(ended: Ended | None, not_run: NotRun | None, empties: int, last: Last) -> None:
    assert last_of(ended, not_run, empty_in_a_row=empties) == last


def test_three_empty_answers_make_it_stale_until_something_else_happens() -> None:
    stale = last_of(Ended(6, RunState.FAILED, "no text"), None, empty_in_a_row=STALE_AFTER)
    assert (stale.status, "3 consecutive times" in stale.error) == (LastStatus.STALE, True)
    assert last_of(Ended(6, RunState.FAILED), NotRun(7, "busy"), empty_in_a_row=3).status is LastStatus.SKIPPED
    assert last_of(Ended(6, RunState.SUCCEEDED), None, empty_in_a_row=3).status is LastStatus.SUCCESS


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_word_and_what_failed_a_reason(state: RunState) -> None:
    status = run_status(state)
    assert (status in (RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.SKIPPED)) is (state in FINAL)
    assert bool(error_of(state, None, None)) is (status in (RunStatus.ERROR, RunStatus.SKIPPED))
    assert len(error_of(state, "x" * 5_000, None)) <= 1_000
