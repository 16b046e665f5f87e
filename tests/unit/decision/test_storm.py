"""How many runs an act would let loose, case by case."""

from __future__ import annotations

import pytest
from unit.decision.builders import NOON, make_planning, make_position

from horarium.core.decision.decide import (
    MOST_AT_ONCE,
    due_within_a_minute,
    must_be_confirmed,
    released_at_once,
    released_by_edit,
)
from horarium.core.document.planning import Planning
from horarium.core.document.states import Status
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.instant import MINUTE, Instant

ONE_BY_ONE = make_planning(overlap=OverlapPolicy.BUFFER_ALL)
ALL = make_planning(overlap=OverlapPolicy.ALLOW_ALL)
FIVE = make_planning(overlap=Overlap(OverlapPolicy.BUFFER_ALL, max_concurrency=5))
KEYED = make_planning(overlap=OverlapPolicy.ALLOW_ALL, concurrency_key="k")


@pytest.mark.parametrize(
    ("planning", "active", "held", "count"),
    [
        (ALL, 3, 0, 0),
        (ALL, 3, 5_000, 5_000),
        (ONE_BY_ONE, 0, 5_000, 1),
        (ONE_BY_ONE, 1, 5_000, 0),
        (FIVE, 2, 5_000, 3),
        (FIVE, 9, 5_000, 0),
        (KEYED, 0, 5_000, KEYED.concurrency_limit),
    ],
    ids=["nothing held", "no bound", "one by one", "busy", "some room", "over full", "a key"],
)
def test_what_finds_room_is_let_go(planning: Planning, active: int, held: int, count: int) -> None:
    assert released_at_once(planning, active=active, held=held) == count


@pytest.mark.parametrize(
    ("before", "after", "status", "until", "count"),
    [
        (ONE_BY_ONE, ALL, Status.ACTIVE, None, 5_000),
        (ALL, ALL, Status.ACTIVE, None, 0),
        (None, ALL, Status.ACTIVE, None, 5_000),
        (ONE_BY_ONE, ALL, Status.PAUSED, None, 0),
        (ONE_BY_ONE, ALL, Status.PAUSED, NOON, 5_000),
        (ALL, ALL, Status.PAUSED, NOON, 0),
        (ALL, ONE_BY_ONE, Status.ACTIVE, None, 0),
        (ONE_BY_ONE, ALL, Status.FINISHED, None, 5_000),
        (ONE_BY_ONE, ALL, Status.BROKEN, NOON, 0),
    ],
    ids=[
        "opened",
        "on their way already",
        "mended",
        "paused",
        "paused until",
        "paused until, on their way already",
        "closed",
        "without a future",
        "broken",
    ],
)
def test_an_edit_answers_for_what_it_lets_go(
    before: Planning | None, after: Planning, status: Status, until: Instant | None, count: int
) -> None:
    assert released_by_edit(before, after, status, active=1, held=5_000, paused_until=until) == count


def test_what_fires_within_a_minute_is_counted() -> None:
    soon = make_position()._replace(next_due=NOON + MINUTE)
    later, never = soon._replace(next_due=NOON + MINUTE + 1), soon._replace(next_due=None)
    paused = soon._replace(status=Status.PAUSED)
    assert due_within_a_minute([soon, later, never, paused, soon], NOON) == 2


def test_a_thousand_need_no_word() -> None:
    assert (must_be_confirmed(MOST_AT_ONCE), must_be_confirmed(MOST_AT_ONCE + 1)) == (False, True)
