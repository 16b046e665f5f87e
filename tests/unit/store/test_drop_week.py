"""What the checkpoint of a schedule says when a week of its history goes whole."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.features.history.week_rows import Mark, StayingRows, Sums, judge


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, Mark(8, 50)),
        ({"last": None}, None),
        ({"decided_until": None}, None),
        ({"stays": True}, None),
        ({"has_older": True}, StayingRows()),
        ({"nominal": 101}, StayingRows()),
        ({"nominal": None}, Mark(8, 40)),
        ({"nominal": None, "settled": None}, Mark(8, 0)),
        ({"settled": 70}, Mark(8, 70)),
        ({"settled": 700}, Mark(8, 100)),
    ],
)
def test_what_the_checkpoint_of_a_schedule_says(given: dict[str, Any], verdict: object) -> None:
    usual = Sums(b"u", 7, 50, 100, stays=False, settled=40, has_older=False)
    assert judge(usual._replace(**given)) == verdict
