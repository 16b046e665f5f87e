"""What a subscription wants: which entries pass, what is refused, and how long to pause."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.states import RunState
from horarium.errors import InvalidDefinition
from horarium.features.webhooks.filters import KINDS, FeedNotice, has_place, is_wanted, pause_after, read_filter

FAILED = FeedNotice("run_finished", "s", {"team": "a", "tier": "1"}, state=RunState.FAILED)
LATE = FeedNotice("schedule_health", "s", {"team": "a"}, status=HealthStatus.LATE)
BOTH = ["run_finished", "schedule_health"]
CASES: dict[str, tuple[list[str], dict[str, Any] | None, FeedNotice, bool]] = {
    "the kind": (["run_finished"], None, FAILED, True),
    "another kind": (["schedule_skipped"], None, FAILED, False),
    "of several kinds": (BOTH, {}, LATE, True),
    "the schedule": (BOTH, {"schedule_id": "s"}, FAILED, True),
    "one of the schedules": (BOTH, {"schedule_id": ["r", "s"]}, FAILED, True),
    "another schedule": (BOTH, {"schedule_id": ["r"]}, FAILED, False),
    "a run of no schedule": (BOTH, {"schedule_id": ["s"]}, FeedNotice("run_finished", state=RunState.FAILED), False),
    "all the labels": (BOTH, {"labels": {"team": "a", "tier": "1"}}, FAILED, True),
    "not all the labels": (BOTH, {"labels": {"team": "a", "tier": "1"}}, LATE, False),
    "the state": (BOTH, {"states": ["failed", "timed_out"]}, FAILED, True),
    "another state": (BOTH, {"states": ["timed_out"]}, FAILED, False),
    "a group of states": (BOTH, {"states": ["unsuccessful"]}, FAILED, True),
    "a launch that failed": (
        BOTH,
        {"states": "unsuccessful"},
        FeedNotice("run_finished", state=RunState.LAUNCH_FAILED),
        True,
    ),
    "an unknown outcome": (
        BOTH,
        {"states": ["unsuccessful"]},
        FeedNotice("run_finished", state=RunState.UNKNOWN),
        True,
    ),
    "a state outside of the group": (
        BOTH,
        {"states": ["unsuccessful"]},
        FeedNotice("run_finished", state=RunState.CANCELLED),
        False,
    ),
    "a state narrows ends alone": (BOTH, {"states": ["timed_out"]}, LATE, True),
    "the status": (BOTH, {"statuses": ["late"]}, LATE, True),
    "another status": (BOTH, {"statuses": ["failing"]}, LATE, False),
    "a status narrows health alone": (BOTH, {"statuses": ["failing"]}, FAILED, True),
}


@pytest.mark.parametrize(("kinds", "narrowed", "told", "passes"), CASES.values(), ids=CASES)
def test_what_passes(kinds: list[str], narrowed: dict[str, Any] | None, told: FeedNotice, passes: bool) -> None:
    wanted = read_filter(kinds, narrowed)
    assert is_wanted(wanted, told) is passes
    assert read_filter(sorted(wanted.kinds), wanted.filter_document()) == wanted


REFUSED: dict[str, tuple[object, object, str]] = {
    "no kinds": (None, None, "kinds"),
    "no kind": ([], {}, "kinds"),
    "an unknown kind": (["run_finish"], {}, "kinds"),
    "kinds of numbers": ([1], {}, "kinds"),
    "too many kinds": (["run_finished"] * 101, {}, "kinds"),
    "a filter that is no object": (BOTH, ["x"], "filter"),
    "an unknown filter": (BOTH, {"schedule": "s"}, "filter.schedule"),
    "an open state": (BOTH, {"states": ["running"]}, "filter.states"),
    "an unknown status": (BOTH, {"statuses": ["sick"]}, "filter.statuses"),
    "labels that are a list": (BOTH, {"labels": ["a"]}, "filter.labels"),
    "labels that are numbers": (BOTH, {"labels": {"a": 1}}, "filter.labels"),
    "an id that cannot be stored": (BOTH, {"schedule_id": "a\x00"}, "filter.schedule_id"),
    "a long id": (BOTH, {"schedule_id": "a" * 256}, "filter.schedule_id"),
}


@pytest.mark.parametrize(("kinds", "narrowed", "field"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(kinds: object, narrowed: object, field: str) -> None:
    with pytest.raises(InvalidDefinition) as wrong:
        read_filter(kinds, narrowed)
    assert set(wrong.value.errors) == {field}


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InvalidDefinition) as wrong:
        read_filter("x", {"states": 3, "labels": 3})
    assert set(wrong.value.errors) == {"kinds", "filter.states", "filter.labels"}


@pytest.mark.parametrize(("failures", "pause"), [(1, 5), (2, 30), (3, None)])
def test_after_the_last_pause_it_is_given_up(failures: int, pause: float | None) -> None:
    assert pause_after(failures, (5, 30)) == pause


@pytest.mark.parametrize(
    ("mine", "taken", "expected"),
    [(0, 0, True), (3, 5, True), (4, 5, False), (1, 6, False), (0, 6, True), (0, 7, True), (0, 8, False)],
)
def test_the_last_places_are_for_those_who_have_none(mine: int, taken: int, expected: bool) -> None:
    assert has_place(mine, taken, places=8, places_of_one=4) is expected


def test_the_kinds_are_those_of_the_feed() -> None:
    assert {"run_finished", "schedule_health", "schedule_skipped"} <= set(KINDS)
