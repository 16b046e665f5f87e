"""How a schedule is doing: the first word that holds, and the sentence with the numbers behind it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.decision.builders import UID, make_planning

from horarium.core.decision.health import AwaitingApprovals, FailedRun, HealthFacts, gap_around, judge, must_be_told
from horarium.core.decision.statuses import NEEDS_SOMEBODY, UNWELL, HealthStatus
from horarium.core.document.planning import Planning
from horarium.core.document.states import RunState, Status
from horarium.core.policy.queue import Catchup
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import HOUR, SECOND, from_rfc3339

NOON = from_rfc3339("2026-05-04T12:00:00Z")  # a Monday
HOURLY = make_planning("0 * * * *")


def vitals(**known: Any) -> HealthFacts:
    """Hourly, active, decided up to noon, with a run that ended well."""
    usual = {
        "planning": HOURLY,
        "failing_after": 3,
        "decided_until": NOON,
        "runs_born": 9,
        "last_completed_at": NOON + SECOND,
    }
    return HealthFacts(UID, **{"status": Status.ACTIVE, **usual, **known})


def failed(*states: RunState) -> tuple[FailedRun, ...]:
    return tuple(FailedRun(f"R{at}", state, NOON - at * HOUR, "no route") for at, state in enumerate(states))


WAITS = AwaitingApprovals(2, NOON - HOUR)
CASES = {
    "nothing is wrong": (vitals(), 0, "ok", "2026-05-04T13:00:00Z"),
    "two failures are not three": (vitals(failures_in_a_row=2), 0, "ok", "The last 2 runs failed"),
    "a threshold of its own": (
        vitals(planning=Planning(HOURLY.spec, failing_after=1), failures_in_a_row=1),
        0,
        "failing",
        "The last run failed.",
    ),
    "a threshold above the setting": (
        vitals(planning=Planning(HOURLY.spec, failing_after=5), failures_in_a_row=4),
        0,
        "ok",
        "failing after 5 failures in a row.",
    ),
    "the setting": (vitals(failing_after=2, failures_in_a_row=2), 0, "failing", "The last 2 runs failed"),
    "the error of a last run that failed": (
        vitals(failures_in_a_row=1, last_failure="no route"),
        0,
        "ok",
        "The last run failed (no route). The status becomes failing after 3 failures in a row.",
    ),
    "no run has ended": (vitals(last_completed_at=None), 0, "ok", "No run has ended yet."),
    "no run was born": (vitals(runs_born=0), 0, "never_run", "2026-05-04T13:00:00Z"),
    "finished without a run": (
        vitals(status=Status.FINISHED, runs_born=0, planning=Planning(compile_spec(at=["2026-05-01T00:00:00Z"]))),
        0,
        "never_run",
        "No further occurrences.",
    ),
    "finished after a run": (
        vitals(status=Status.FINISHED, planning=Planning(compile_spec(at=["2026-05-01T00:00:00Z"]))),
        0,
        "ok",
        "No further occurrences.",
    ),
    "at the end of the grace": (vitals(), HOUR + 60 * SECOND, "ok", ""),
    "beyond the grace": (vitals(), HOUR + 61 * SECOND, "late", "2026-05-04T13:00:00Z is 61 s overdue"),
    "a grace of its own": (
        vitals(planning=Planning(HOURLY.spec, catchup=Catchup(misfire_grace_seconds=0))),
        HOUR + 1,
        "late",
        "the misfire grace is 0 s",
    ),
    "two gaps without a decision": (vitals(), 2 * HOUR, "late", ""),
    "more than two gaps without one": (
        vitals(),
        2 * HOUR + SECOND,
        "stale",
        "2026-05-04T12:00:00Z (7201 s ago), although 2 occurrences were due. The limit is 7200 s",
    ),
    "stale though the grace is long": (
        vitals(planning=Planning(HOURLY.spec, catchup=Catchup(misfire_grace_seconds=86_400))),
        3 * HOUR,
        "stale",
        "10800 s ago",
    ),
    "a one-off that nobody decides": (
        vitals(planning=Planning(compile_spec(at=["2026-05-04T13:00:00Z"])), runs_born=0),
        100 * HOUR,
        "late",
        "2026-05-04T13:00:00Z",
    ),
    "failing": (
        vitals(failures_in_a_row=4, failed=failed(RunState.FAILED, RunState.TIMED_OUT, RunState.UNKNOWN)),
        0,
        "failing",
        "The last 4 runs failed, newest first: R0 failed at 2026-05-04T12:00:00Z, R1 timed_out at "
        "2026-05-04T11:00:00Z, R2 unknown at 2026-05-04T10:00:00Z. Last error: no route.",
    ),
    "failing whose runs are gone": (vitals(failures_in_a_row=3), 0, "failing", "The last 3 runs failed."),
    "failing by empty answers": (
        vitals(failures_in_a_row=3, empty_in_a_row=3),
        0,
        "failing",
        "The last 3 runs failed (3 consecutive empty responses).",
    ),
    "failing before stale": (vitals(failures_in_a_row=3), 9 * HOUR, "failing", ""),
    "waiting before failing": (
        vitals(failures_in_a_row=3, waiting=WAITS),
        9 * HOUR,
        "waiting_for_approval",
        "2 runs await approval, the oldest since 2026-05-04T11:00:00Z",
    ),
    "a step that waits": (
        vitals(waiting=AwaitingApprovals(0, NOON, 1)),
        0,
        "waiting_for_approval",
        "A step of a run has been awaiting approval since 2026-05-04T12:00:00Z.",
    ),
    "a run and steps that wait": (
        vitals(waiting=AwaitingApprovals(1, NOON, 2)),
        0,
        "waiting_for_approval",
        "1 run and 2 steps await approval, the oldest since 2026-05-04T12:00:00Z.",
    ),
    "one that waits": (
        vitals(waiting=AwaitingApprovals(1, NOON)),
        0,
        "waiting_for_approval",
        "A run has been awaiting approval",
    ),
    "paused before waiting": (
        vitals(status=Status.PAUSED, waiting=WAITS, paused_at=NOON, pause_reason="holidays"),
        99 * HOUR,
        "paused",
        "since 2026-05-04T12:00:00Z: holidays.",
    ),
    "broken before all": (
        vitals(status=Status.BROKEN, waiting=WAITS, failures_in_a_row=3, error="two\nlines " + "x" * 999),
        99 * HOUR,
        "broken",
        "two lines xxx",
    ),
    "what cannot be compiled": (vitals(planning=None, error="no such zone"), 0, "broken", "no such zone."),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_word_that_holds(case: tuple[HealthFacts, int, str, str]) -> None:
    known, later, status, told = case
    found = judge(known, NOON + later)
    assert (found.status, told in found.sentence) == (status, True), found.sentence
    assert len(found.sentence) < 1_000
    assert "\n" not in found.sentence


def test_every_word_has_a_case() -> None:
    assert {status for _, _, status, _ in CASES.values()} == set(HealthStatus)


@pytest.mark.parametrize(
    ("was", "status", "told"),
    [
        (None, "ok", False),
        (None, "paused", False),
        (None, "failing", True),
        (None, "waiting_for_approval", True),
        ("late", "late", False),
        ("late", "failing", True),
        ("failing", "ok", True),
        ("failing", "paused", True),
    ],
)
def test_what_is_told_when_health_changes(was: str | None, status: str, told: bool) -> None:
    before = None if was is None else HealthStatus(was)
    assert must_be_told(before, HealthStatus(status)) is told


def test_which_words_are_wrong() -> None:
    assert {"broken", "failing", "stale", "late"} == UNWELL
    assert {"waiting_for_approval"} == NEEDS_SOMEBODY - UNWELL


def test_the_numbers_stand_beside_the_sentence() -> None:
    found = judge(vitals(), NOON + 2 * HOUR)
    assert (found.expected_next, found.late_seconds, found.stale_after_seconds) == (NOON + HOUR, 3_600.0, 7_200.0)
    paused = judge(vitals(status=Status.PAUSED), NOON + 2 * HOUR)
    assert (paused.expected_next, paused.late_seconds) == (NOON + 3 * HOUR, 0.0)


WEEKDAYS = make_planning("0 9 * * 1-5")
GAPS = {
    # The day before and the day after, by the calendar of May 2026, in which the 4th is a Monday.
    "within a week": ("2026-05-06T12:00:00Z", 24),
    "on a Sunday": ("2026-05-10T12:00:00Z", 72),
    "right after a weekend": ("2026-05-11T09:00:00Z", 72),
    "the day after": ("2026-05-12T09:00:00Z", 24),
}


@pytest.mark.parametrize(("now", "hours"), GAPS.values(), ids=GAPS)
def test_the_longer_gap_beside_the_newest_occurrence(now: str, hours: int) -> None:
    assert gap_around(WEEKDAYS.spec, from_rfc3339(now)) == hours * HOUR


def test_a_spec_has_no_gap_before_its_first_occurrence_nor_with_one_alone() -> None:
    once = compile_spec(at=["2026-05-04T13:00:00Z"])
    assert gap_around(once, NOON) is None
    assert gap_around(once, NOON + 2 * HOUR) is None


@given(
    st.sampled_from(["0 9 * * 1-5", "0 * * * *", "*/7 8-10 * * *", "0 0 1 * *", "0 3 * * 0", "30 2 29 2 *"]),
    st.integers(0, 3 * 366 * 24 * 3_600),
)
def test_whoever_is_decided_before_the_next_occurrence_is_never_stale(expression: str, seconds: int) -> None:
    """However slow: at the worst the newest occurrence waits for its decision, and the one before has it."""
    planning, now = make_planning(expression), NOON + seconds * SECOND
    newest = planning.spec.previous_before(now + 1)
    assert newest is not None
    decided = planning.spec.previous_before(newest)
    assert decided is not None
    assert judge(vitals(planning=planning, decided_until=decided), now).status is not HealthStatus.STALE


def test_how_many_make_a_row() -> None:
    assert judge(vitals(failures_in_a_row=3), NOON).status is HealthStatus.FAILING
    assert judge(vitals(failures_in_a_row=2), NOON).status is HealthStatus.OK
