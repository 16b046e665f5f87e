"""The last occurrences of a schedule: one entry each, oldest first, with how late they began and how long they took."""

from __future__ import annotations

import pytest

from horarium.core.decision.statuses import HAPPENED, Happened, Recent, in_order
from horarium.core.document.states import Origin
from horarium.instant import SECOND

FIRED, SKIPPED = Happened.FIRED, Happened.SKIPPED
RUN, OTHER = b"0123456789abcdef", b"fedcba9876543210"


def test_the_oldest_comes_first() -> None:
    assert [each.at for each in in_order([Recent(3, FIRED, run_id=RUN), Recent(1, SKIPPED), Recent(2, SKIPPED)])] == [
        1,
        2,
        3,
    ]


SKIP, FILL = Recent(5, SKIPPED, "missed"), Recent(5, FIRED, run_id=RUN, origin=Origin.BACKFILL)
BY_HAND = Recent(5, FIRED, run_id=OTHER, origin=Origin.MANUAL)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ([SKIP, FILL], [FILL]),
        ([FILL, SKIP], [FILL]),
        ([SKIP, SKIP], [SKIP]),
        ([SKIP, BY_HAND], [SKIP, BY_HAND]),
    ],
    ids=["skipped, then backfilled", "whatever the order", "twice", "by hand at the same instant"],
)
def test_an_occurrence_is_shown_once_and_its_run_wins(told: list[Recent], shown: list[Recent]) -> None:
    assert list(in_order(told)) == shown


@pytest.mark.parametrize(
    ("due", "started", "finished", "late", "took"),
    [
        (10, 12, 17, 2.0, 5.0),
        (10, 12, None, 2.0, None),
        (10, None, None, None, None),
        (10, None, 17, None, None),  # refused before it began
        (10, 9, 8, 0.0, 0.0),  # a clock that was set back
        (None, 12, 17, None, 5.0),
    ],
)
def test_lateness_and_duration_are_those_of_the_run(
    due: int | None, started: int | None, finished: int | None, late: float | None, took: float | None
) -> None:
    def at(seconds: int | None) -> int | None:
        return None if seconds is None else seconds * SECOND

    each = Recent(0, FIRED, run_id=RUN, due=at(due), started_at=at(started), finished_at=at(finished))
    assert (each.late_seconds, each.duration_seconds) == (late, took)


def test_every_word_is_that_of_a_decision() -> None:
    assert sorted(HAPPENED.values()) == sorted(Happened)
