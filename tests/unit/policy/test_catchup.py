"""What is late, what is too old, and how a backlog is spread."""

from itertools import pairwise

import pytest

from horarium.core.policy.queue import CATCHUP_ALIASES, Catchup, CatchupPolicy, PolicyError, parse_catchup, spread_due
from horarium.instant import SECOND

NOW = 1_700_000_000 * SECOND


def test_the_aliases_are_those_of_the_vocabularies_we_read():
    assert dict(CATCHUP_ALIASES) == {
        "run_once": CatchupPolicy.FIRE_ONCE,
        "none": CatchupPolicy.SKIP,
        "fire_immediately": CatchupPolicy.FIRE_ALL,
        "backfill": CatchupPolicy.FIRE_ALL,
    }


def test_the_defaults_are_the_documented_ones():
    assert Catchup() == Catchup(CatchupPolicy.FIRE_ONCE, 100, None, 60, 60)


def test_a_spread_begins_now_and_ends_with_the_span():
    due = [spread_due(position, 5, now=NOW, spread_seconds=60) for position in range(5)]
    assert [(moment - NOW) / SECOND for moment in due] == [0, 15, 30, 45, 60]


def test_a_single_run_is_spread_to_now():
    assert spread_due(0, 1, now=NOW, spread_seconds=60) == NOW


@pytest.mark.parametrize("count", [2, 3, 7, 100, 997])
def test_a_spread_is_even_to_a_microsecond_and_in_order(count):
    due = [spread_due(position, count, now=NOW, spread_seconds=60) for position in range(count)]
    steps = {later - earlier for earlier, later in pairwise(due)}
    assert max(steps) - min(steps) <= 1
    assert min(steps) > 0
    assert (due[0], due[-1]) == (NOW, NOW + 60 * SECOND)


def test_a_spread_over_nothing_is_all_at_once():
    assert {spread_due(position, 9, now=NOW, spread_seconds=0) for position in range(9)} == {NOW}


@pytest.mark.parametrize(("position", "count"), [(-1, 3), (3, 3), (0, 0)])
def test_a_position_outside_the_backlog_is_refused(position, count):
    with pytest.raises(ValueError, match="position"):
        spread_due(position, count, now=NOW, spread_seconds=60)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"policy": "skip"}, "catchup_policy"),
        ({"max_catchup": -1}, "max_catchup"),
        ({"max_catchup": True}, "max_catchup"),
        ({"catchup_window_seconds": -1}, "catchup_window_seconds"),
        ({"catchup_spread_seconds": 0.5}, "catchup_spread_seconds"),
        ({"misfire_grace_seconds": -1}, "misfire_grace_seconds"),
        ({"misfire_grace_seconds": 10**30}, "misfire_grace_seconds"),
    ],
    ids=str,
)
def test_an_invalid_catchup_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        Catchup(**settings)
    assert caught.value.field == field


def test_an_object_is_read_with_its_defaults():
    assert parse_catchup({}) == Catchup()
    assert parse_catchup({"onMissed": "run_once", "maxBackfill": 3}) == Catchup(CatchupPolicy.FIRE_ONCE, 3)
    assert parse_catchup(
        {
            "catchup_policy": "Spread",
            "max_catchup": 0,
            "catchupWindowSeconds": 1,
            "catchupSpreadSeconds": 2,
            "misfireGraceSeconds": 3,
        }
    ) == Catchup(CatchupPolicy.SPREAD, 0, 1, 2, 3)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"catchup_policy": "maybe"}, "catchup_policy"),
        ({"maxCatchup": "9"}, "max_catchup"),
        ({"catchup_window_seconds": "9"}, "catchup_window_seconds"),
        ({"limit": 9}, "limit"),
    ],
    ids=str,
)
def test_a_wrong_object_is_refused_by_its_key(document, field):
    with pytest.raises(PolicyError) as caught:
        parse_catchup(document)
    assert caught.value.field == field
