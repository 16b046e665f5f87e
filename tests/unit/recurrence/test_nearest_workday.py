"""The workday nearest to a day stays in its month, as the manual of Quartz's CronTrigger says of `W`."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from horarium import next_fires

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("expression", "month", "day"),
    [
        ("0 0 15W * *", "2022-11", 15),  # a Tuesday
        ("0 0 15W * *", "2022-10", 14),  # the 15th is a Saturday
        ("0 0 15W * *", "2022-05", 16),  # a Sunday
        ("0 0 1W * *", "2022-10", 3),  # a Saturday, and the Friday before is in September
        ("0 0 1W * *", "2023-01", 2),  # a Sunday
        ("0 0 31W * *", "2022-12", 30),  # a Saturday
        ("0 0 31W * *", "2022-07", 29),  # a Sunday, and the Monday after is in August
        ("0 0 30W * *", "2023-04", 28),  # a Sunday at the end of a short month
        ("0 0 28W * *", "2021-02", 26),  # a Sunday at the end of February
    ],
)
def test_the_nearest_workday_is_in_the_same_month(expression: str, month: str, day: int) -> None:
    [found] = next_fires(
        expression, after=datetime.fromisoformat(f"{month}-01T00:00:00Z") - SECOND, count=1, timezone="UTC"
    )
    assert found.date() == date.fromisoformat(f"{month}-{day:02}")
