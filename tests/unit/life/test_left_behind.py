"""Which changes of a run leave something with its target that nobody wants: a pure table."""

from __future__ import annotations

import pytest

from horarium.core.document.states import FINAL, RunState
from horarium.core.lifecycle.live_run import is_left_behind, is_to_be_ended
from horarium.core.lifecycle.outcome import Begin, Block, Change, End, RetryLater

BY_TARGET = {RunState.SUCCEEDED, RunState.FAILED}


@pytest.mark.parametrize("state", sorted(FINAL))
def test_every_end_that_the_target_has_not_said_leaves_something(state: RunState) -> None:
    """Also one that its holder was asked for: who held it may not have reached the target."""
    assert is_left_behind(End(state)) == (state not in BY_TARGET)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (End(RunState.FAILED, cause="runtime_cap"), True),
        (RetryLater(0, 1, 0, error_class="timeout", known=True), True),
        (RetryLater(0, 1, 0, error_class="agent_failed", known=True), False),
        (RetryLater(0, 0, 1, error_class="timeout", follows=True), False),
        (RetryLater(0, 0, 1, untouched=True), False),
        (Begin("t1"), False),
        (Block("agent_input", "?", "t1"), False),
    ],
)
def test_what_goes_on_is_left_to_who_goes_on_with_it(change: Change, left: bool) -> None:
    assert is_left_behind(change) == left


@pytest.mark.parametrize(
    ("change", "running", "queued"),
    [
        (End(RunState.TERMINATED), True, True),
        (End(RunState.TIMED_OUT), True, False),
        (RetryLater(0, 1, 0, error_class="timeout", known=True), True, False),
        (End(RunState.FAILED, cause="cost_cap"), True, False),
        (End(RunState.FAILED), False, False),
        (End(RunState.CANCELLED), False, False),
        (End(RunState.SUCCEEDED), False, False),
        (RetryLater(0, 1, 0, error_class="ValueError", known=True), False, False),
        (RetryLater(0, 0, 1, timed=True), False, False),
    ],
)
def test_a_worker_behind_a_broker_is_stopped_by_force_and_when_the_time_is_over(
    change: Change, running: bool, queued: bool
) -> None:
    assert (is_to_be_ended(change, running=True), is_to_be_ended(change, running=False)) == (running, queued)
