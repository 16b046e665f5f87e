"""The position is small, frozen and says what it starts with."""

from __future__ import annotations

import pytest

from horarium.core.document.states import Position, Status


def test_the_statuses_are_those_of_the_contract() -> None:
    assert [status.value for status in Status] == ["active", "paused", "finished", "deleted", "broken"]


def test_a_new_position_is_active_in_its_first_generation_with_nothing_born() -> None:
    position = Position(decided_until=5, next_due=None)
    assert (position.status, position.generation, position.runs_born, position.rotation_index) == (
        Status.ACTIVE,
        1,
        0,
        0,
    )


def test_a_position_cannot_be_changed_in_place() -> None:
    position = Position(1, 2)
    for name in Position._fields:
        with pytest.raises(AttributeError):
            setattr(position, name, 3)


def test_equal_positions_are_equal_values() -> None:
    assert len({Position(1, 2), Position(1, 2), Position(1, 3)}) == 2
