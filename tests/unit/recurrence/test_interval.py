"""An interval is a grid anchored at the epoch: forwards, backwards, membership and counts agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.recurrence.parts import Interval, parse_interval
from horarium.errors import InvalidSpec

seconds = st.integers(-(10**6), 10**6)
intervals = st.builds(Interval, st.integers(1, 5_000), st.integers(0, 20_000))


@pytest.mark.parametrize(
    ("every", "offset", "t", "following", "previous"),
    [
        (60, 0, 0, 60, -60),
        (60, 0, 59, 60, 0),
        (60, 0, 60, 120, 0),
        (60, 0, 61, 120, 60),
        (60, 5, 0, 5, -55),
        (60, 5, 5, 65, -55),
        (60, 65, 0, 5, -55),
        (60, 0, -1, 0, -60),
        (1, 0, 7, 8, 6),
    ],
)
def test_the_neighbours_of_a_moment(every: int, offset: int, t: int, following: int, previous: int) -> None:
    interval = Interval(every, offset)
    assert (interval.next_after(t), interval.previous_before(t)) == (following, previous)


@settings(derandomize=True, deadline=None)
@given(intervals, seconds)
def test_the_next_is_the_first_that_is_on_the_grid(interval: Interval, t: int) -> None:
    following, previous = interval.next_after(t), interval.previous_before(t)
    assert previous < t < following
    assert interval.contains(following)
    assert interval.contains(previous)
    assert following - previous == interval.every * (2 if interval.contains(t) else 1)


@settings(derandomize=True, deadline=None)
@given(intervals, seconds, st.integers(-100, 20_000))
def test_a_count_is_what_a_walk_would_count(interval: Interval, after: int, span: int) -> None:
    walked, t = 0, interval.next_after(after)
    while t <= after + span:
        walked, t = walked + 1, interval.next_after(t)
    assert interval.count(after, after + span) == walked


@pytest.mark.parametrize(
    ("every", "offset", "expected"),
    [("PT30M", None, Interval(1_800)), ("P1D", "PT9H", Interval(86_400, 32_400)), ("PT1S", "PT0S", Interval(1))],
)
def test_an_interval_is_read_from_durations(every: str, offset: str | None, expected: Interval) -> None:
    assert parse_interval(every, offset) == expected


@pytest.mark.parametrize(
    ("every", "offset", "field"),
    [
        ("PT0S", None, "every"),
        ("P1M", None, "every"),
        ("x", None, "every"),
        ("PT5M", "P1Y", "offset"),
        ("PT5M", "", "offset"),
    ],
)
def test_a_bad_interval_names_the_field(every: str, offset: str | None, field: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse_interval(every, offset)
    assert refused.value.field == field


@pytest.mark.parametrize("every", [0, -1])
def test_an_interval_that_does_not_move_cannot_exist(every: int) -> None:
    with pytest.raises(InvalidSpec, match="must be greater than 0"):
        Interval(every)
