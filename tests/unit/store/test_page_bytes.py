"""How many rows fit in a page."""

from __future__ import annotations

import pytest

from horarium.platform.database.statements import fitting


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([3, 3, 3], 3, id="all"),
        pytest.param([5, 5], 2, id="to the last byte"),
        pytest.param([5, 5, 1], 2, id="one byte too much"),
        pytest.param([50, 1], 1, id="one that is too large comes alone"),
        pytest.param([1, 50, 1], 1, id="before one that is too large"),
    ],
)
def test_as_many_rows_as_fit_and_one_at_least(sizes: list[int], count: int) -> None:
    assert fitting(sizes, 10) == count
