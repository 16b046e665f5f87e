"""A batch is shared between namespaces, and inside one between what is old and what has just come due."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.decision.tick import DueLane, old_shares, raise_evenly, recent_shares, shares_of_the_rest

stable = settings(derandomize=True, deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("levels", "room", "added"),
    [
        ([], 5, []),
        ([0], 5, [5]),
        ([0, 0], 5, [3, 2]),
        ([0, 0, 0], 2, [1, 1, 0]),
        ([4, 0], 3, [0, 3]),
        ([4, 0], 6, [1, 5]),
        ([4, 0], 7, [2, 5]),
        ([1, 5, 3], 4, [3, 0, 1]),
        ([7, 7], 0, [0, 0]),
    ],
)
def test_the_lowest_are_raised_first(levels: list[int], room: int, added: list[int]) -> None:
    assert raise_evenly(levels, room) == added


@stable
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(0, 200))
def test_all_room_is_given_and_nobody_is_passed_over(levels: list[int], room: int) -> None:
    added = raise_evenly(levels, room)
    assert sum(added) == room
    assert min(added) >= 0
    after = [level + more for level, more in zip(levels, added, strict=True)]
    # Whoever was given something stands no more than one above the lowest.
    assert all(high - min(after) <= 1 for high, more in zip(after, added, strict=True) if more)


def test_half_of_a_part_is_kept_for_what_is_recent() -> None:
    assert old_shares(["a"], 500) == {DueLane("a", False): 250}
    assert recent_shares(["a"], {"a": 250}, 500) == {DueLane("a", True): 250}
    assert recent_shares(["a"], {}, 500) == {DueLane("a", True): 500}


def test_namespaces_have_equal_parts() -> None:
    assert old_shares(["a", "b", "c"], 500) == {
        DueLane("a", False): 83,
        DueLane("b", False): 83,
        DueLane("c", False): 83,
    }
    recent = recent_shares(["a", "b", "c"], {"a": 83, "b": 0, "c": 5}, 500)
    assert recent == {DueLane("a", True): 84, DueLane("b", True): 167, DueLane("c", True): 161}


def test_a_part_of_one_is_for_what_is_recent() -> None:
    assert old_shares(["a", "b"], 2) == {}
    assert recent_shares(["a", "b"], {}, 2) == {DueLane("a", True): 1, DueLane("b", True): 1}


def test_what_is_not_needed_goes_to_those_who_have_more() -> None:
    lanes = [DueLane("a", False), DueLane("b", False), DueLane("b", True)]
    assert shares_of_the_rest(lanes, {"a": 100, "b": 166, "c": 2}, 500) == {
        DueLane("a", False): 149,
        DueLane("b", False): 42,
        DueLane("b", True): 41,
    }
    assert shares_of_the_rest(lanes, {"a": 250, "b": 250}, 500) == {}
    assert shares_of_the_rest([], {"a": 1}, 500) == {}


@stable
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), min_size=1, max_size=8), st.integers(1, 600))
def test_a_batch_is_filled_and_everybody_gets_his_part(due: list[tuple[int, int]], limit: int) -> None:
    """As the store does: old ones first, then the recent, then the rest, twice."""
    names = [f"n{place}" for place in range(len(due))]
    left = {lane: count for name, pair in zip(names, due, strict=True)
            for lane, count in zip((DueLane(name, False), DueLane(name, True)), pair, strict=True)}  # fmt: skip
    taken: dict[str, int] = {}
    got: dict[DueLane, int] = {}

    def take(shares: dict[DueLane, int]) -> None:
        for lane, share in shares.items():
            count = min(share, left[lane])
            left[lane] -= count
            got[lane] = got.get(lane, 0) + count
            taken[lane.namespace] = taken.get(lane.namespace, 0) + count

    take(old_shares(names, limit))
    take(recent_shares(names, taken, limit))
    for _ in range(2 * len(names)):
        take(shares_of_the_rest([lane for lane in left if left[lane]], taken, limit))
    assert sum(taken.values()) == min(limit, sum(map(sum, due)))
    part = limit // len(names)
    for name, (old, recent) in zip(names, due, strict=True):
        assert taken.get(name, 0) >= min(part, old + recent)
        assert got.get(DueLane(name, True), 0) >= min(part - part // 2, recent)
        assert got.get(DueLane(name, False), 0) >= min(part // 2, old)
