"""Which release is the newest, and what names one that says nothing."""

from __future__ import annotations

import pytest

from horarium.features.bundles.values import ReleaseOrder, fingerprint, release_order


@pytest.mark.parametrize(
    ("release", "known", "expected"),
    [
        ("a", {}, (ReleaseOrder.FIRST, 1)),
        ("a", {"a": 1}, (ReleaseOrder.NEWEST, 1)),
        ("b", {"a": 1}, (ReleaseOrder.FIRST, 2)),
        ("a", {"a": 1, "b": 2}, (ReleaseOrder.OLDER, 1)),
        ("b", {"a": 1, "b": 2}, (ReleaseOrder.NEWEST, 2)),
        ("c", {"a": 7, "b": 9}, (ReleaseOrder.FIRST, 10)),
    ],
)
def test_releases_are_as_old_as_they_were_first_seen(
    release: str, known: dict[str, int], expected: tuple[ReleaseOrder, int]
) -> None:
    assert release_order(release, known) == expected


def test_the_same_declarations_are_the_same_release() -> None:
    one, other = {"schedule_id": "a", "x": 1}, {"schedule_id": "b"}
    assert fingerprint([one, other]) == fingerprint([other, dict(reversed(one.items()))])
    assert fingerprint([one]) != fingerprint([one, other])
    assert fingerprint([{"x": object}]) == fingerprint([{"x": object}])
