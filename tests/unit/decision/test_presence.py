"""A ticker was present without a break as long as its clock readings are at most the gap apart, in both directions."""

from __future__ import annotations

import pytest

from horarium.core.decision.presence import (
    GAP_SECONDS,
    PRESENCE_BEAT_SECONDS,
    Presence,
    decided_ahead_until,
    extend_presence,
    join_presences,
    short_breaks,
)
from horarium.instant import SECOND

HOUR = 3_600


def at(since: float, until: float, *breaks: tuple[float, float]) -> Presence:
    instants = tuple((round(begin * SECOND), round(end * SECOND)) for begin, end in breaks)
    return Presence(round(since * SECOND), round(until * SECOND), instants)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([100], at(100, 100)),
        ([100, 101, 131], at(100, 131, (101, 131))),
        ([100, 130.000001], at(130.000001, 130.000001)),
        ([100, 101, 101 + HOUR], at(101 + HOUR, 101 + HOUR)),
        ([100, 101, 101 - HOUR], at(101 - HOUR, 101 - HOUR)),
        ([100, 90], at(90, 90)),
        ([100, 101, 90, 120], at(90, 120, (90, 120))),
    ],
    ids=["first", "at the gap", "suspended", "set forward", "set back", "a little back", "goes on after a little back"],
)
def test_a_presence_ends_where_the_clock_moves_by_more_than_the_gap(readings: list[float], expected: Presence) -> None:
    found: Presence | None = None
    for reading in readings:
        found = extend_presence(found, round(reading * SECOND))
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
    assert join_presences(recorded, now * SECOND, None if own is None else own * SECOND) == expected


@pytest.mark.parametrize(
    ("recorded", "noted", "now", "expected"),
    [
        (None, None, 100, None),
        (100, None, 100, None),
        (100 + GAP_SECONDS, None, 100, None),
        (HOUR, None, 100, HOUR + PRESENCE_BEAT_SECONDS),
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


@pytest.mark.parametrize(
    ("recorded", "noted", "own", "expected"),
    [
        (None, None, at(100, 100), []),
        (100, None, at(108, 108), [(100, 108)]),
        (108, [[100, 108]], at(108, 113), [(100, 108)]),
        (113, [[100, 108]], at(90, 114), []),
        (113, [[100, 108]], at(90, 114, (101, 109)), [(100, 108)]),
        (101, None, at(90, 110, (102, 109)), [(102, 109)]),
        (106, None, at(90, 110, (102, 109)), [(106, 109)]),
        (110, None, at(90, 110, (102, 109)), []),
        (HOUR, [[100, 108]], at(HOUR, 2 * HOUR), []),
        (108, [[100], "x", [1, 2, 3], ["a", "b"]], at(108, 110), []),
        (108, "corrupt", at(108, 110), []),
    ],
    ids=[
        "nobody before", "a process begins", "remembered", "another was there", "another was suspended, too",
        "suspended", "suspended while another was there", "recorded already", "long ago", "damaged entries", "damaged",
    ],
)  # fmt: skip
def test_short_breaks_are_those_that_no_process_was_there_to_see(
    recorded: int | None, noted: object, own: Presence, expected: list[tuple[int, int]]
) -> None:
    if isinstance(noted, list):
        noted = [
            [n * SECOND if isinstance(n, int) else n for n in each] if isinstance(each, list) else each
            for each in noted
        ]
    found = short_breaks(None if recorded is None else recorded * SECOND, noted, own)
    assert [(begin // SECOND, end // SECOND) for begin, end in found] == expected
