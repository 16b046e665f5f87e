"""A ticker was present without a break as long as its clock readings are at most the gap apart, in both directions."""

from __future__ import annotations

import pytest

from horarium.decision.presence import BEAT_SECONDS, GAP_SECONDS, Presence, decided_ahead_until, extend, join
from horarium.instant import SECOND

HOUR = 3_600


def at(since: float, until: float) -> Presence:
    return Presence(round(since * SECOND), round(until * SECOND))


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([100], at(100, 100)),
        ([100, 101, 131], at(100, 131)),
        ([100, 130.000001], at(130.000001, 130.000001)),
        ([100, 101, 101 + HOUR], at(101 + HOUR, 101 + HOUR)),
        ([100, 101, 101 - HOUR], at(101 - HOUR, 101 - HOUR)),
        ([100, 90], at(90, 90)),
        ([100, 101, 90, 120], at(90, 120)),
    ],
    ids=["first", "at the gap", "suspended", "set forward", "set back", "a little back", "goes on after a little back"],
)
def test_a_presence_ends_where_the_clock_moves_by_more_than_the_gap(readings: list[float], expected: Presence) -> None:
    found: Presence | None = None
    for reading in readings:
        found = extend(found, round(reading * SECOND))
    assert found == expected


@pytest.mark.parametrize(
    ("recorded", "now", "own", "expected"),
    [
        (None, 100, None, at(100, 100)),
        (None, 100, 40, at(40, 100)),
        (at(50, 90), 100, None, at(50, 100)),
        (at(50, 90), 200, None, at(200, 200)),
        (at(50, 90), 200, 100, at(50, 200)),
        (at(50, 90), 200, 121, at(121, 200)),
        (at(50, 90), 95, 20, at(20, 95)),
        (at(50, 120), 100, 95, at(50, 120)),
        (at(50, HOUR), 100, 95, at(95, 100)),
        (at(50, HOUR), 100, None, at(100, 100)),
    ],
    ids=[
        "first", "first, waited long", "on time", "after a break", "waited long and was there", "came after a break",
        "was there before the record", "a clock a little behind", "the record was ahead", "ahead, without proof",
    ],
)  # fmt: skip
def test_a_process_that_could_not_write_proves_its_presence_afterwards(
    recorded: Presence | None, now: int, own: int | None, expected: Presence
) -> None:
    assert join(recorded, now * SECOND, None if own is None else own * SECOND) == expected


@pytest.mark.parametrize(
    ("recorded", "noted", "now", "expected"),
    [
        (None, None, 100, None),
        (100, None, 100, None),
        (100 + GAP_SECONDS, None, 100, None),
        (HOUR, None, 100, HOUR + BEAT_SECONDS),
        (105, HOUR, 110, HOUR),
        (HOUR, 2 * HOUR, 100, 2 * HOUR),
        (HOUR, HOUR, HOUR + 1, None),
        (105, "corrupt", 110, None),
        (105, True, 110, None),
    ],
)
def test_what_a_clock_that_was_ahead_has_decided_is_remembered_until_then(
    recorded: int | None, noted: object, now: int, expected: int | None
) -> None:
    told = noted * SECOND if isinstance(noted, int) and not isinstance(noted, bool) else noted
    until = decided_ahead_until(None if recorded is None else recorded * SECOND, told, now * SECOND)
    assert until == (None if expected is None else expected * SECOND)
