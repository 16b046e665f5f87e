"""What `advance` does when things go wrong: retries, halt, fallback, caps and requests to cancel."""

from __future__ import annotations

from typing import Any

import pytest
from unit.decision.workflows import (
    FALLBACK,
    HALT,
    PAIR,
    START,
    S,
    ask,
    born,
    ended,
    fact,
    graph,
    skipped,
)

from horarium.decision.step import (
    FAILURES,
    REASSIGNABLE,
    Advance,
    EndCause,
    SkipReason,
    StepBirth,
    StepRetry,
    StepSkip,
)
from horarium.instant import SECOND
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.limits import RunLimits, Usage
from horarium.policy.retry import RetryCause, RetryPolicy, backoff, unit_hash
from horarium.schedule.run import NOT_STARTED, TRANSITIONS, RunState

# ── failures ──────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_is_retried_after_the_backoff_of_its_policy() -> None:
    policy = RetryPolicy(max_retries=2, backoff_ms=1_000)
    wait = backoff(1_000, 60_000, 2, unit_hash("run-a", 2)) * 1_000
    answer = ask(PAIR, fact("a", S.FAILED, attempt=2), retry=policy)
    assert answer == Advance(retries=(StepRetry("a", "run-a", 2, START + wait),))
    assert wait > 0


def test_the_retry_policy_of_a_node_goes_before_that_of_the_run() -> None:
    workflow = graph("b", a={"retry_policy": RetryPolicy(max_retries=5)})
    answer = ask(workflow, fact("a", S.FAILED, attempt=5), fact("b", S.FAILED))
    assert [retry.node_id for retry in answer.retries] == ["a"]


@pytest.mark.parametrize(
    ("state", "error_class", "retry_on", "retried"),
    [
        pytest.param(S.FAILED, "rate_limit", (RetryCause.RATE_LIMIT,), True, id="its-cause"),
        pytest.param(S.FAILED, "rate_limit", (RetryCause.TIMEOUT,), False, id="another-cause"),
        pytest.param(S.FAILED, "x" * 10_000, tuple(RetryCause), False, id="the-targets-own-word"),
        pytest.param(S.TIMED_OUT, None, (RetryCause.TIMEOUT,), True, id="timed-out-is-a-timeout"),
        pytest.param(S.TIMED_OUT, None, (RetryCause.PROVIDER_ERROR,), False, id="timed-out-is-nothing-else"),
        pytest.param(S.LAUNCH_FAILED, None, tuple(RetryCause), False, id="launches-have-their-own-budget"),
        pytest.param(S.UNKNOWN, None, tuple(RetryCause), False, id="may-have-been-done"),
        pytest.param(S.REJECTED, None, tuple(RetryCause), False, id="refused"),
        pytest.param(S.EXPIRED, None, tuple(RetryCause), False, id="nobody-answered"),
    ],
)
def test_which_ends_are_retried(
    state: RunState, error_class: str | None, retry_on: tuple[RetryCause, ...], retried: bool
) -> None:
    policy = RetryPolicy(max_retries=3, retry_on=retry_on)
    answer = ask(graph("a"), fact("a", state, error_class=error_class), retry=policy)
    assert bool(answer.retries) is retried
    assert (answer.root is None) is retried


def test_a_retry_that_would_start_after_the_runtime_cap_is_given_up() -> None:
    policy = RetryPolicy(max_retries=3, backoff_ms=10_000)
    failed = fact("a", S.FAILED)
    assert ask(graph("a"), failed, retry=policy, limits=RunLimits(runtime_seconds=60)).retries
    assert ended(ask(graph("a"), failed, retry=policy, limits=RunLimits(runtime_seconds=5))) == (
        S.FAILED,
        "step_failed",
    )


def test_halt_starts_nothing_and_stops_the_rest_before_the_root_fails() -> None:
    workflow = graph("a", "b", "c", "d", "e", edges=(("a", "b"), ("e", "d")))
    running, waiting, done = fact("c", S.RUNNING), fact("d", S.AWAITING_APPROVAL), fact("e", S.SUCCEEDED)
    answer = ask(workflow, fact("a", S.FAILED), running, waiting, done, failure=HALT)
    assert answer == Advance(skips=(StepSkip("b", SkipReason.WORKFLOW_HALTED),), cancels=("run-d",), stops=("run-c",))
    rest = (fact("b", S.SKIPPED, cause="workflow_halted"), fact("d", S.CANCELLED), done)
    asked = fact("c", S.RUNNING, stop_requested=True)
    assert ask(workflow, fact("a", S.FAILED), asked, *rest, failure=HALT) == Advance()
    last = ask(workflow, fact("a", S.FAILED), fact("c", S.SUCCEEDED), *rest, failure=HALT)
    assert ended(last) == (S.FAILED, EndCause.STEP_FAILED)


def test_halt_comes_after_the_retries() -> None:
    answer = ask(graph("a", "b"), fact("a", S.FAILED), failure=HALT, retry=RetryPolicy(max_retries=1))
    assert [retry.node_id for retry in answer.retries] == ["a"]
    assert born(answer) == {"b": S.READY}


def test_a_halted_run_retries_nothing() -> None:
    answer = ask(
        graph("a", "b"), fact("a", S.REJECTED), fact("b", S.FAILED), failure=HALT, retry=RetryPolicy(max_retries=1)
    )
    assert answer.retries == ()
    assert ended(answer) == (S.FAILED, EndCause.STEP_FAILED)


def test_a_cancelled_step_does_not_halt() -> None:
    assert born(ask(graph("a", "b"), fact("a", S.CANCELLED), failure=HALT)) == {"b": S.READY}


@pytest.mark.parametrize("state", sorted(FAILURES))
def test_a_fallback_takes_over_what_was_tried_and_not_what_was_refused_or_may_be_done(state: RunState) -> None:
    answer = ask(PAIR, fact("a", state), failure=FALLBACK)
    if state in REASSIGNABLE:
        inputs: dict[str, Any] = {"inputs": {}, "results": {}}
        assert answer == Advance(births=(StepBirth("a", S.READY, inputs, "spare", replaces="run-a"),))
    else:
        assert skipped(answer) == {"b": "parent_not_successful"}
        assert ended(answer) == (S.FAILED, EndCause.STEP_FAILED)


@pytest.mark.parametrize("known", [{"fallen_back": True}, {"assignee_id": "spare"}], ids=["once", "not-to-itself"])
def test_a_step_falls_back_once_and_to_somebody_else(known: dict[str, Any]) -> None:
    answer = ask(PAIR, fact("a", S.FAILED, **known), failure=FALLBACK)
    assert answer.births == ()
    assert ended(answer) == (S.FAILED, EndCause.STEP_FAILED)


def test_a_fallback_comes_after_the_retries_and_has_retries_of_its_own() -> None:
    twice = RetryPolicy(max_retries=1)
    assert ask(PAIR, fact("a", S.FAILED), failure=FALLBACK, retry=twice).retries
    assert ask(PAIR, fact("a", S.FAILED, attempt=2), failure=FALLBACK, retry=twice).births[0].assignee_id == "spare"
    assert ask(PAIR, fact("a", S.FAILED, fallen_back=True), failure=FALLBACK, retry=twice).retries


def test_a_fallback_that_succeeds_covers_the_failure() -> None:
    answer = ask(graph("a"), fact("a", S.SUCCEEDED, fallen_back=True, result=1), failure=FALLBACK)
    assert ended(answer) == (S.SUCCEEDED, None)


def test_a_fallback_needs_an_approval_of_its_own() -> None:
    answer = ask(
        graph(a={"gates": ("spend",)}),
        fact("a", S.FAILED),
        failure=FALLBACK,
        approval=ApprovalPolicy(gates=frozenset({"spend"})),
    )
    assert [(birth.state, birth.gates, birth.replaces) for birth in answer.births] == [
        (S.AWAITING_APPROVAL, ("spend",), "run-a")
    ]


def test_a_target_that_had_no_room_is_a_failure_unlike_other_skips() -> None:
    busy = fact("a", S.SKIPPED, cause="target_busy")
    assert ended(ask(graph("a"), busy)) == (S.FAILED, EndCause.STEP_FAILED)
    again = ask(graph("a"), busy, failure=FALLBACK)
    assert again.births[0].assignee_id == "spare"
    assert again.root is None
    assert ended(ask(graph("a"), fact("a", S.SKIPPED, cause="branch_not_taken"))) == (S.SUCCEEDED, None)


# ── caps and cancelling ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limits", "usage", "cause"),
    [
        (RunLimits(cost=2), Usage(cost=3), "cost_cap"),
        (RunLimits(tokens=2), Usage(tokens=3), "tokens_cap"),
        (RunLimits(tool_calls=2), Usage(tool_calls=3), "tool_calls_cap"),
        (RunLimits(runtime_seconds=9), Usage(), "runtime_cap"),
        (RunLimits(runtime_seconds=99), Usage(runtime_seconds=99), "runtime_cap"),
    ],
)
def test_a_cap_ends_the_run_at_once(limits: RunLimits, usage: Usage, cause: str) -> None:
    workflow = graph("a", "b", "c", edges=(("a", "c"),))
    facts = (fact("a", S.RUNNING), fact("b", S.READY))
    answer = ask(workflow, *facts, limits=limits, usage=usage, now=START + 9 * SECOND)
    assert answer.cancels == ("run-a", "run-b")
    assert (answer.stops, answer.births) == ((), ())
    assert skipped(answer) == {"c": "run_cap_reached"}
    assert ended(answer) == (S.FAILED, cause)


def test_a_limit_that_is_only_met_does_not_end_the_run() -> None:
    limits, usage = RunLimits(runtime_seconds=9, cost=2, tokens=2, tool_calls=2), Usage(0, 2, 2, 2)
    assert born(ask(graph("a"), limits=limits, usage=usage, now=START + 9 * SECOND - 1)) == {"a": S.READY}


def test_a_clock_that_was_set_back_costs_no_runtime() -> None:
    assert born(ask(graph("a"), limits=RunLimits(runtime_seconds=1), now=START - SECOND)) == {"a": S.READY}


def test_a_cap_retries_and_reassigns_nothing() -> None:
    over: dict[str, Any] = {"limits": RunLimits(cost=1), "usage": Usage(cost=2), "retry": RetryPolicy(max_retries=9)}
    answer = ask(graph("a"), fact("a", S.FAILED), failure=FALLBACK, **over)
    assert (answer.births, answer.retries) == ((), ())
    assert ended(answer) == (S.FAILED, EndCause.STEP_FAILED)


def test_a_request_to_cancel_stops_what_runs_and_ends_what_has_not_started() -> None:
    workflow = graph("a", "b", "c", "d", edges=(("a", "d"),))
    held = fact("c", S.HELD)
    answer = ask(workflow, fact("a", S.RUNNING, gate="publish"), fact("b", S.FAILED), held, cancel=True)
    assert answer == Advance(skips=(StepSkip("d", SkipReason.RUN_CANCELLED),), cancels=("run-c",), stops=("run-a",))
    rest = (fact("b", S.FAILED), fact("c", S.CANCELLED), fact("d", S.SKIPPED, cause="run_cancelled"))
    assert ask(workflow, fact("a", S.LAUNCHING, stop_requested=True), *rest, cancel=True) == Advance()
    last = ask(workflow, fact("a", S.CANCELLED), *rest, cancel=True)
    assert ended(last) == (S.CANCELLED, EndCause.CANCEL_REQUESTED)


@pytest.mark.parametrize(
    ("stop", "reason", "end"),
    [
        ({"cancel": True}, "run_cancelled", (S.CANCELLED, "cancel_requested")),
        ({"limits": RunLimits(cost=1), "usage": Usage(cost=2)}, "run_cap_reached", (S.FAILED, "cost_cap")),
    ],
    ids=["cancel", "cap"],
)
def test_a_run_stopped_between_two_steps_ends_for_that_reason_and_stays_so(
    stop: dict[str, Any], reason: str, end: tuple[RunState, str]
) -> None:
    done = fact("a", S.SUCCEEDED)
    answer = ask(PAIR, done, **stop)
    assert skipped(answer) == {"b": reason}
    assert ended(answer) == end
    assert ask(PAIR, done, fact("b", S.SKIPPED, cause=reason), **stop) == Advance(root=answer.root)


def test_a_cancelled_run_ends_at_its_cap_at_the_latest() -> None:
    deaf = fact("a", S.RUNNING, stop_requested=True)
    answer = ask(graph("a"), deaf, cancel=True, limits=RunLimits(runtime_seconds=1), now=START + SECOND)
    assert answer.cancels == ("run-a",)
    assert ended(answer) == (S.CANCELLED, EndCause.CANCEL_REQUESTED)


@pytest.mark.parametrize("late", [{"cancel": True}, {"limits": RunLimits(cost=1), "usage": Usage(cost=2)}])
def test_a_stop_that_finds_nothing_left_changes_nothing(late: dict[str, Any]) -> None:
    assert ended(ask(graph("a"), fact("a", S.SUCCEEDED), **late)) == (S.SUCCEEDED, None)


def test_steps_that_have_not_started_can_be_cancelled_and_failures_that_are_retried_can_be_ready_again() -> None:
    assert all(S.CANCELLED in TRANSITIONS[state] for state in NOT_STARTED)
    assert S.READY in TRANSITIONS[S.RUNNING]
