"""What becomes of a run after each kind of answer: a pure table."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from engine.builders import START

from horarium.engine.settlement import (
    BUSY_SECONDS,
    Again,
    Settlement,
    Waits,
    plan_given_back,
    plan_lost_lease,
    plan_settlement,
    plan_unstorable,
)
from horarium.instant import HOUR, SECOND
from horarium.life.outcome import (
    Accepted,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.policy.limits import PolicyError
from horarium.policy.retry import LaunchRetry, RetryPolicy
from horarium.schedule.run import RunState
from horarium.store.closing import End
from horarium.store.runs import Work

NOW = START
RETRY = RetryPolicy(max_retries=2, backoff_ms=1_000)
LAUNCH_RETRY = LaunchRetry(max_attempts=3, base_ms=1_000, max_ms=8_000)


def work(**given: Any) -> Work:
    values: dict[str, Any] = {
        "run_id": b"r" * 16,
        "namespace": "default",
        "schedule_uid": b"s" * 16,
        "revision": 1,
        "workflow": None,
        "kind": "http",
        "origin": "scheduled",
        "state": "launching",
        "nominal": NOW,
        "due": NOW,
        "attempt": 0,
        "launches": 1,
        "busy_since": None,
        "lease_epoch": 1,
        "deadline": NOW + HOUR,
        "timeout_seconds": 3_600,
        "queue": None,
        "delivery": "at_least_once",
        "rotation_index": None,
        "trigger_number": 1,
        "inputs": None,
        "reference": None,
        "stop_requested_at": None,
        "created_at": NOW,
        "started_at": None,
        "root_run_id": None,
        "node_id": None,
    }
    return Work(**(values | given))


def plan(outcome: Outcome, **given: Any) -> Settlement:
    return plan_settlement(outcome, work(**given), key="key", retry=RETRY, launch_retry=LAUNCH_RETRY, now=NOW)


TABLE: dict[type, tuple[Outcome, Settlement]] = {
    Finished: (
        Finished({"n": 1}, 0.25, 7),
        End(RunState.SUCCEEDED, {"n": 1}, cost=250_000, tokens=7),
    ),
    Accepted: (Accepted("ref", queued=True), Waits("ref", True)),
    Refused: (Refused("no"), End(RunState.LAUNCH_FAILED, error="no", error_class="refused")),
    RunTimedOut: (RunTimedOut("late"), End(RunState.TIMED_OUT, error="late", error_class="timeout")),
    RunCancelled: (RunCancelled("asked"), End(RunState.CANCELLED, error="asked")),
}
TRIED_AGAIN = {Busy: Busy(), Unreachable: Unreachable("x"), Unknown: Unknown("x"), RunFailed: RunFailed("x")}


def test_every_outcome_has_a_row() -> None:
    assert set(TABLE) | set(TRIED_AGAIN) == set(get_args(Outcome))


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.__name__)
def test_an_answer_that_settles_the_matter_does(kind: type) -> None:
    outcome, settled = TABLE[kind]
    assert plan(outcome) == settled


@pytest.mark.parametrize("kind", TRIED_AGAIN, ids=lambda kind: kind.__name__)
def test_other_answers_are_tried_again_later(kind: type) -> None:
    settled = plan(TRIED_AGAIN[kind])
    assert isinstance(settled, Again)
    assert settled.ready_at > NOW


# ── busy ─────────────────────────────────────────────────────────────────────────────────────────────


def test_busy_counts_nothing_and_remembers_since_when() -> None:
    settled = plan(Busy())
    assert settled == Again(NOW + 10 * SECOND, 0, 0, NOW, "the target is busy")


@pytest.mark.parametrize(("wish", "seconds"), [(3.5, 3.5), (0.0, 0.1), (-7.0, 0.1), (500.0, BUSY_SECONDS)])
def test_the_target_may_name_its_time(wish: float, seconds: float) -> None:
    settled = plan(Busy(wish))
    assert isinstance(settled, Again)
    assert settled.ready_at == NOW + round(seconds * SECOND)


def test_there_is_a_last_try_when_the_patience_ends() -> None:
    settled = plan(Busy(115.0), busy_since=NOW - 60 * SECOND)
    assert isinstance(settled, Again)
    assert settled.ready_at == NOW + 60 * SECOND


def test_after_two_minutes_a_busy_target_is_a_skip() -> None:
    settled = plan(Busy(), busy_since=NOW - BUSY_SECONDS * SECOND)
    assert isinstance(settled, End)
    assert (settled.state, settled.cause) == (RunState.SKIPPED, "target_busy")


# ── deliveries ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("outcome", [Unreachable("gone"), Unknown("gone")], ids=["unreachable", "unknown"])
def test_a_delivery_is_repeated_within_its_budget(outcome: Outcome) -> None:
    waits = []
    for launches in (1, 2):
        settled = plan(outcome, launches=launches)
        assert isinstance(settled, Again)
        assert (settled.attempt, settled.launches, settled.error) == (0, launches, "gone")
        waits.append(settled.ready_at - NOW)
    assert 0.5 * SECOND <= waits[0] <= SECOND <= waits[1] <= 2 * SECOND


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Unreachable("gone"), RunState.LAUNCH_FAILED), (Unknown("gone"), RunState.UNKNOWN)],
    ids=["unreachable", "unknown"],
)
@pytest.mark.parametrize("given", [{"launches": 3}, {"deadline": NOW + 1}], ids=["budget", "deadline"])
def test_beyond_the_budget_or_the_deadline_it_ends(outcome: Outcome, state: RunState, given: dict[str, Any]) -> None:
    settled = plan(outcome, **given)
    assert isinstance(settled, End)
    assert settled.state is state


def test_at_most_once_never_repeats_what_may_have_arrived() -> None:
    settled = plan(Unknown("?"), delivery="at_most_once")
    assert isinstance(settled, End)
    assert settled.state is RunState.UNKNOWN
    # What has certainly not arrived may be sent.
    assert isinstance(plan(Unreachable("?"), delivery="at_most_once"), Again)


def test_an_unknown_outcome_at_the_deadline_timed_out() -> None:
    settled = plan(Unknown("?"), deadline=NOW)
    assert isinstance(settled, End)
    assert settled.state is RunState.TIMED_OUT


def test_a_lost_lease_is_an_unknown_outcome() -> None:
    once = plan_lost_lease(work(delivery="at_most_once"), key="k", launch_retry=LAUNCH_RETRY, now=NOW)
    often = plan_lost_lease(work(), key="k", launch_retry=LAUNCH_RETRY, now=NOW)
    assert isinstance(once, End)
    assert once.state is RunState.UNKNOWN
    assert isinstance(often, Again)


def test_what_is_given_back_at_a_stop_may_begin_at_once() -> None:
    assert plan_given_back(work(launches=2, attempt=1), NOW) == Again(
        NOW, 1, 1, None, "the process that worked on this run was stopped"
    )
    once = plan_given_back(work(delivery="at_most_once"), NOW)
    assert isinstance(once, End)
    assert once.state is RunState.UNKNOWN


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_known_failure_is_a_new_attempt_with_a_new_budget_of_deliveries() -> None:
    settled = plan(RunFailed("boom"), launches=2)
    assert isinstance(settled, Again)
    assert (settled.attempt, settled.launches, settled.error) == (1, 0, "boom")


@pytest.mark.parametrize(
    ("outcome", "given"),
    [
        (RunFailed("boom"), {"attempt": 2}),
        (RunFailed("boom", "their_own_word"), {}),
        (RunFailed("boom"), {"deadline": NOW + 1}),
    ],
    ids=["used up", "not retryable", "deadline"],
)
def test_a_failure_that_is_not_retried_ends_the_run(outcome: RunFailed, given: dict[str, Any]) -> None:
    settled = plan(outcome, **given)
    assert settled == End(RunState.FAILED, None, "boom", outcome.error_class)


def test_a_result_that_came_with_the_failure_is_kept() -> None:
    settled = plan(RunFailed("boom", "own", {"partial": 1}))
    assert isinstance(settled, End)
    assert settled.result == {"partial": 1}


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, "1"], ids=str)
def test_a_cost_that_is_none_is_refused(cost: Any) -> None:
    with pytest.raises(PolicyError):
        plan(Finished(None, cost))


def test_an_answer_that_cannot_be_kept_is_a_failure_that_says_so() -> None:
    settled = plan_unstorable(TypeError("no JSON"))
    assert (settled.state, settled.error_class) == (RunState.FAILED, "unstorable_answer")
    assert "TypeError: no JSON" in (settled.error or "")
