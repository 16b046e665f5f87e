"""Which quota ends what, and how the limits of a namespace are changed."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.policy.limits import (
    BYTES_OF_A_RUN,
    FOR_EVER,
    ROOM_WITHOUT_END,
    NamespaceUsage,
    Quota,
    QuotaExcess,
    QuotaRoom,
    Quotas,
    RetentionPolicy,
    changed_quotas,
    changed_retention,
    definitions_exceed,
    gap_exceeds,
    room_for_runs,
)
from horarium.core.policy.queue import PolicyError

NONE = Quotas(None, None, None, None, None)
SMALL = Quotas(schedules=3, runs_per_minute=10, open_runs=5, bytes_stored=20_000, shortest_gap_seconds=60)


@pytest.mark.parametrize(
    ("limits", "usage", "room"),
    [
        (NONE, NamespaceUsage(9, 9, 9, 9), ROOM_WITHOUT_END),
        (SMALL, NamespaceUsage(), QuotaRoom(5, Quota.OPEN_RUNS, 5, 0)),
        (SMALL, NamespaceUsage(runs_this_minute=8), QuotaRoom(2, Quota.RUNS_PER_MINUTE, 10, 8)),
        (SMALL, NamespaceUsage(open_runs=7), QuotaRoom(0, Quota.OPEN_RUNS, 5, 7)),
        (SMALL, NamespaceUsage(runs_this_minute=10, open_runs=5), QuotaRoom(0, Quota.RUNS_PER_MINUTE, 10, 10)),
        (SMALL, NamespaceUsage(bytes_stored=19_500), QuotaRoom(0, Quota.BYTES_STORED, 20_000, 19_500)),
        (SMALL, NamespaceUsage(schedules=99), QuotaRoom(5, Quota.OPEN_RUNS, 5, 0)),
    ],
    ids=["no limits", "nothing yet", "this minute", "open", "two at once", "bytes", "schedules bear nothing"],
)
def test_what_is_used_up_first_says_how_many_runs_fit(limits: Quotas, usage: NamespaceUsage, room: QuotaRoom) -> None:
    assert room_for_runs(limits, usage) == room


def test_a_refusal_tells_what_the_batch_has_born_too() -> None:
    assert QuotaRoom(3, Quota.OPEN_RUNS, 10, 7).exceeded(3) == QuotaExcess(Quota.OPEN_RUNS, 10, 10, 1)
    bytes_left = QuotaRoom(1, Quota.BYTES_STORED, 5_000, 3_500).exceeded(1)
    assert (bytes_left.used, bytes_left.asked) == (3_500 + BYTES_OF_A_RUN, BYTES_OF_A_RUN)


@pytest.mark.parametrize(
    ("schedules", "size", "usage", "found"),
    [
        (1, 100, NamespaceUsage(schedules=2), None),
        (1, 100, NamespaceUsage(schedules=3), QuotaExcess(Quota.SCHEDULES, 3, 3, 1)),
        (4, 100, NamespaceUsage(), QuotaExcess(Quota.SCHEDULES, 3, 0, 4)),
        (0, 100, NamespaceUsage(schedules=4), None),
        (0, 100, NamespaceUsage(bytes_stored=19_950), QuotaExcess(Quota.BYTES_STORED, 20_000, 19_950, 100)),
    ],
    ids=["the last", "one too many", "all at once", "an edit of one too many", "too large"],
)
def test_definitions_are_counted_and_weighed(
    schedules: int, size: int, usage: NamespaceUsage, found: QuotaExcess | None
) -> None:
    assert definitions_exceed(SMALL, usage, schedules=schedules, size=size) == found
    assert definitions_exceed(NONE, usage, schedules=schedules, size=size) is None


def test_a_gap_is_as_long_as_the_shortest_or_longer() -> None:
    assert gap_exceeds(SMALL, 60) is None
    assert gap_exceeds(SMALL, None) is None
    assert gap_exceeds(SMALL, 59) == QuotaExcess(Quota.SHORTEST_GAP_SECONDS, 60, 59, 59)


def test_defaults_lie_above_a_hundred_thousand() -> None:
    assert all(limit is not None and limit > 100_000 for limit in (Quotas().open_runs, Quotas().runs_per_minute))


def test_own_limits_stand_before_the_settings() -> None:
    own = changed_quotas({"schedules": 7}, {"open_runs": None, "runs_per_minute": 5, "schedules": "default"})
    assert own == {"open_runs": None, "runs_per_minute": 5}
    assert Quotas().with_own(own) == Quotas(open_runs=None, runs_per_minute=5)
    assert Quotas().with_own({"of another release": 1}) == Quotas()


@pytest.mark.parametrize(
    "asked",
    [7, [], {"runs": 1}, {"schedules": -1}, {"schedules": True}, {"schedules": 1.5}, {"schedules": 10**16}, {7: 1}],
    ids=repr,
)
def test_what_is_no_limit_is_refused(asked: Any) -> None:
    with pytest.raises(PolicyError):
        changed_quotas({}, asked)


def test_days_are_a_number_or_for_ever_or_those_of_the_settings() -> None:
    settings = RetentionPolicy(90, None)
    assert RetentionPolicy().in_force(settings) == RetentionPolicy(90, FOR_EVER)
    for_ever = changed_retention(RetentionPolicy(), {"keep_runs_days": None})
    assert for_ever.in_force(settings) == RetentionPolicy(FOR_EVER, FOR_EVER)
    assert changed_retention(for_ever, {"keep_runs_days": "default"}) == RetentionPolicy()
    assert changed_retention(for_ever, {"keep_history_days": 7}) == RetentionPolicy(FOR_EVER, 7)
    for wrong in (7, {"days": 1}, {"keep_runs_days": 0}, {"keep_runs_days": 10**9}, {"keep_runs_days": "soon"}):
        with pytest.raises(PolicyError):
            changed_retention(RetentionPolicy(), wrong)
