"""What the end of a run means for its schedule."""

from __future__ import annotations

import pytest

from horarium.core.decision.decide import Ending, plan_ending
from horarium.core.document.planning import Planning
from horarium.core.document.states import FINAL, RunState, Status
from horarium.core.recurrence.spec import compile_spec

SPEC = compile_spec(cron_expressions=["* * * * *"])
PATIENT = Planning(spec=SPEC)
STRICT = Planning(spec=SPEC, pause_on_failure=3)

ENDS = {
    RunState.SUCCEEDED: Ending(False, 0),
    RunState.FAILED: Ending(True, 3),
    RunState.TIMED_OUT: Ending(True, 3),
    RunState.LAUNCH_FAILED: Ending(True, 3),
    RunState.UNKNOWN: Ending(True, 3),
    RunState.CANCELLED: Ending(False, 2),
    RunState.TERMINATED: Ending(False, 2),
    RunState.REJECTED: Ending(False, 2),
    RunState.EXPIRED: Ending(False, 2),
    RunState.SKIPPED: Ending(False, 2),
}


def test_every_end_has_a_row() -> None:
    assert set(ENDS) == FINAL


@pytest.mark.parametrize("state", ENDS, ids=str)
def test_failures_in_a_row_are_counted(state: RunState) -> None:
    assert plan_ending(PATIENT, Status.ACTIVE, 2, state) == ENDS[state]


def test_enough_failures_in_a_row_pause_with_a_reason() -> None:
    ending = plan_ending(STRICT, Status.ACTIVE, 2, RunState.FAILED)
    assert ending == Ending(True, 3, "paused after 3 failed runs in a row")


@pytest.mark.parametrize(
    ("row", "status", "state"),
    [
        (1, Status.ACTIVE, RunState.FAILED),
        (2, Status.PAUSED, RunState.FAILED),
        (2, Status.DELETED, RunState.FAILED),
        (2, Status.ACTIVE, RunState.CANCELLED),
    ],
    ids=["not yet", "paused already", "deleted", "ended by a wish"],
)
def test_otherwise_nothing_is_paused(row: int, status: Status, state: RunState) -> None:
    assert plan_ending(STRICT, status, row, state).pause_reason is None
