"""Which release is the newest, and what names one that says nothing."""

from __future__ import annotations

import pytest

from horarium.schedule.release import Turn, fingerprint, turn_of


@pytest.mark.parametrize(
    ("release", "known", "expected"),
    [
        ("a", {}, (Turn.FIRST, 1)),
        ("a", {"a": 1}, (Turn.NEWEST, 1)),
        ("b", {"a": 1}, (Turn.FIRST, 2)),
        ("a", {"a": 1, "b": 2}, (Turn.OLDER, 1)),
        ("b", {"a": 1, "b": 2}, (Turn.NEWEST, 2)),
        ("c", {"a": 7, "b": 9}, (Turn.FIRST, 10)),
    ],
)
def test_releases_are_as_old_as_they_were_first_seen(
    release: str, known: dict[str, int], expected: tuple[Turn, int]
) -> None:
    assert turn_of(release, known) == expected


def test_the_same_declarations_are_the_same_release() -> None:
    one, other = {"schedule_id": "a", "x": 1}, {"schedule_id": "b"}
    assert fingerprint([one, other]) == fingerprint([other, dict(reversed(one.items()))])
    assert fingerprint([one]) != fingerprint([one, other])
    assert fingerprint([{"x": object}]) == fingerprint([{"x": object}])
