"""Whether a failure is tried again, and when."""

import time
from typing import Any

import pytest

from horarium.core.policy.approval import (
    COUNTS_AS,
    AgentFault,
    GiveUp,
    LaunchRetry,
    Retry,
    RetryCause,
    RetryPolicy,
    backoff,
    decide_launch_retry,
    decide_retry,
    parse_retry_policy,
    unit_hash,
)
from horarium.core.policy.queue import PolicyError
from horarium.instant import SECOND

NOW = 1_700_000_000 * SECOND
MILLISECOND = 1_000


def decide(policy=RetryPolicy(), **changes):  # noqa: B008 - the policy is frozen
    asked: dict[str, Any] = {"attempt": 1, "error_class": "timeout", "deadline": None, "now": NOW, "key": "run-1"}
    return decide_retry(policy, **(asked | changes))


@pytest.mark.parametrize(
    ("attempt", "unit", "expected"),
    [(1, 0.0, 250), (1, 0.5, 375), (2, 0.0, 500), (3, 0.0, 1_000), (7, 0.0, 15_000), (10**6, 0.0, 15_000)],
)
def test_a_wait_doubles_up_to_its_ceiling(attempt, unit, expected):
    assert backoff(500, 30_000, attempt, unit) == expected


def test_a_wait_lies_between_half_and_whole_of_its_ceiling():
    assert backoff(1_000, 60_000, 1, 0.0) == 500
    assert backoff(1_000, 60_000, 1, 0.999) == 999
    assert backoff(1_000, 60_000, 1, 1 - 2**-53) <= 1_000


@pytest.mark.parametrize(("base", "most"), [(0, 60_000), (500, 0), (0, 0)])
def test_a_base_or_a_ceiling_of_nothing_does_not_wait(base, most):
    assert backoff(base, most, 10**6, 0.5) == 0


def test_a_millionth_attempt_costs_no_more_than_the_first():
    began = time.process_time()
    for _ in range(100):
        backoff(1, 2**31 - 1, 10**6, 0.9)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("attempt", "unit"), [(0, 0.5), (-1, 0.5), (1, 1.0), (1, -0.1), (1, float("nan"))])
def test_attempts_start_at_one_and_units_stay_below_one(attempt, unit):
    with pytest.raises(ValueError, match="not"):
        backoff(500, 30_000, attempt, unit)


def test_a_hash_is_the_same_for_ever():
    # The first 53 bits of `b2sum -l 64` over each part behind its length in eight bytes.
    assert unit_hash("run-1", 1) == 0.6905579942121117
    assert unit_hash() == 0.8931675160897388


def test_a_hash_keeps_its_parts_apart():
    assert unit_hash("a", "bc") != unit_hash("ab", "c")
    assert unit_hash("a") != unit_hash("a", "")
    assert 0 <= unit_hash("\ud800") < 1


def test_hashes_fill_the_unit_evenly():
    tenths = [0] * 10
    for number in range(10_000):
        tenths[int(unit_hash("run", number) * 10)] += 1
    assert min(tenths) > 850
    assert max(tenths) < 1_150


def test_a_first_failure_is_tried_again_after_a_hashed_wait():
    wait = backoff(1_000, 60_000, 1, unit_hash("run-1", 1))
    assert decide() == Retry(NOW + wait * MILLISECOND)
    assert decide(key="run-2") != decide()


@pytest.mark.parametrize(("retries", "attempt", "again"), [(0, 1, False), (1, 1, True), (1, 2, False), (3, 3, True)])
def test_as_many_failures_are_tried_again_as_the_policy_has_retries(retries, attempt, again):
    outcome = decide(RetryPolicy(max_retries=retries), attempt=attempt)
    assert isinstance(outcome, Retry) if again else outcome == GiveUp("retries_exhausted")


@pytest.mark.parametrize("cause", list(RetryCause))
def test_only_listed_causes_are_tried_again(cause):
    assert isinstance(decide(error_class=cause.value), Retry)
    assert isinstance(decide(RetryPolicy(retry_on=(cause,)), error_class=cause.value.upper()), Retry)
    others = tuple(each for each in RetryCause if each is not cause)
    assert decide(RetryPolicy(retry_on=others), error_class=cause.value) == GiveUp("not_retryable")


@pytest.mark.parametrize("word", ["permission_denied", "", "x" * 10_000, "\ud800"], ids=ascii)
def test_a_class_that_is_no_cause_is_not_tried_again(word):
    assert decide(error_class=word) == GiveUp("not_retryable")


# Whatever the policy says: it lists all causes, and has retries left.
OF_AGENTS = {
    AgentFault.ERROR: RetryCause.PROVIDER_ERROR,
    AgentFault.FAILED: RetryCause.PROVIDER_ERROR,
    AgentFault.REJECTED: None,
    AgentFault.EMPTY: None,
    AgentFault.TOO_LARGE: None,
}


@pytest.mark.parametrize("fault", list(AgentFault))
def test_an_agent_that_broke_down_is_asked_again_and_one_that_rejected_is_not(fault):
    cause = OF_AGENTS[fault]
    assert COUNTS_AS.get(fault) is cause
    outcome = decide(RetryPolicy(max_retries=5), error_class=fault.value)
    if cause is None:
        assert outcome == GiveUp("not_retryable")
    else:
        assert isinstance(outcome, Retry)
        others = tuple(each for each in RetryCause if each is not cause)
        assert decide(RetryPolicy(retry_on=others), error_class=fault.value) == GiveUp("not_retryable")


def test_a_failure_without_a_class_counts_as_the_providers():
    assert isinstance(decide(error_class=None), Retry)
    assert decide(RetryPolicy(retry_on=(RetryCause.TIMEOUT,)), error_class=None) == GiveUp("not_retryable")


def test_a_try_at_or_after_the_deadline_is_given_up():
    at = decide().at
    assert decide(deadline=at) == GiveUp("deadline_reached")
    assert decide(deadline=at + 1) == Retry(at)


def test_launches_have_a_budget_of_their_own():
    asked: dict[str, Any] = {"deadline": None, "now": NOW, "key": "run-1"}
    outcomes = [decide_launch_retry(LaunchRetry(), attempt=attempt, **asked) for attempt in range(1, 6)]
    assert [type(outcome) for outcome in outcomes] == [Retry] * 4 + [GiveUp]
    assert outcomes[4] == GiveUp("retries_exhausted")
    assert outcomes[1] == Retry(NOW + backoff(500, 30_000, 2, unit_hash("run-1", 2)) * MILLISECOND)
    late = decide_launch_retry(LaunchRetry(), attempt=1, deadline=NOW, now=NOW, key="run-1")
    assert late == GiveUp("deadline_reached")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"max_retries": 1_001}, "max_retries"),
        ({"backoff_ms": -1}, "backoff_ms"),
        ({"max_backoff_ms": 1.5}, "max_backoff_ms"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"retry_on": ["timeout"]}, "retry_on"),
        ({"retry_on": ("timeout",)}, "retry_on"),
    ],
    ids=str,
)
def test_an_invalid_retry_policy_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        RetryPolicy(**settings)
    assert caught.value.field == field


@pytest.mark.parametrize("settings", [{"max_attempts": 0}, {"base_ms": -1}, {"max_ms": "1"}], ids=str)
def test_an_invalid_launch_budget_cannot_be_built(settings):
    with pytest.raises(PolicyError):
        LaunchRetry(**settings)


def test_an_object_is_read_with_its_defaults():
    assert parse_retry_policy({}) == RetryPolicy()
    assert parse_retry_policy(
        {
            "maxRetries": 3,
            "backoffMs": 10,
            "maxBackoffMs": 20,
            "retryOn": ["rateLimit", "timeout", "timed_out"],
            "timeoutMs": 5,
        }
    ) == RetryPolicy(3, 10, 20, (RetryCause.RATE_LIMIT, RetryCause.TIMEOUT), 5)
    assert parse_retry_policy({"retry_on": []}).retry_on == ()


def test_a_base_above_the_default_ceiling_lifts_it():
    assert parse_retry_policy({"backoff_ms": 120_000}).max_backoff_ms == 120_000
    assert parse_retry_policy({"backoff_ms": 120_000, "max_backoff_ms": 9}).max_backoff_ms == 9


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"maxRetries": "1"}, "max_retries"),
        ({"retry_on": "timeout"}, "retry_on"),
        ({"retry_on": ["boredom"]}, "retry_on"),
        ({"retry_on": ["timeout"] * 101}, "retry_on"),
        ({"max_attempts": 3}, "max_attempts"),
        ([], "retry_policy"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_wrong_object_is_refused_by_its_key(document, field):
    with pytest.raises(PolicyError) as caught:
        parse_retry_policy(document)
    assert caught.value.field == field
