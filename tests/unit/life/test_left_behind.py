"""Which changes of a run leave something with its target that nobody wants: a pure table."""

from __future__ import annotations

import pytest

from horarium.life.change import Again, Begin, Block, Change, End
from horarium.life.left_behind import is_left_behind
from horarium.schedule.run import FINAL, RunState

BY_TARGET = {RunState.SUCCEEDED, RunState.FAILED}


@pytest.mark.parametrize("state", sorted(FINAL))
def test_every_end_that_the_target_has_not_said_leaves_something(state: RunState) -> None:
    """Also one that its holder was asked for: who held it may not have reached the target."""
    assert is_left_behind(End(state)) == (state not in BY_TARGET)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (End(RunState.FAILED, cause="runtime_cap"), True),
        (Again(0, 1, 0, error_class="timeout", known=True), True),
        (Again(0, 1, 0, error_class="agent_failed", known=True), False),
        (Again(0, 0, 1, error_class="timeout", follows=True), False),
        (Again(0, 0, 1, untouched=True), False),
        (Begin("t1"), False),
        (Block("agent_input", "?", "t1"), False),
    ],
)
def test_what_goes_on_is_left_to_who_goes_on_with_it(change: Change, left: bool) -> None:
    assert is_left_behind(change) == left
