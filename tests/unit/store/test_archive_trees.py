"""How many trees of runs one transaction moves to the archive."""

from __future__ import annotations

import pytest

from horarium.features.runs.archive_rows import first_trees

A, B, C = b"a", b"b", b"c"


@pytest.mark.parametrize(
    ("steps", "most", "chosen"),
    [
        pytest.param({}, 3, (A, B, C), id="as many as there is room for"),
        pytest.param({}, 2, (A, B), id="the first ones"),
        pytest.param({A: 2}, 3, (A,), id="steps count"),
        pytest.param({A: 2}, 4, (A, B), id="and leave room for others"),
        pytest.param({A: 50}, 3, (A,), id="one that is larger than all goes whole, and alone"),
        pytest.param({B: 50}, 3, (A,), id="it is left for the next time where others come before it"),
    ],
)
def test_a_transaction_moves_whole_trees(steps: dict[bytes, int], most: int, chosen: tuple[bytes, ...]) -> None:
    assert tuple(first_trees((A, B, C), steps, most)) == chosen


def test_nothing_is_no_tree() -> None:
    assert tuple(first_trees((), {}, 3)) == ()
