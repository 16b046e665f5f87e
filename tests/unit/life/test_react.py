"""What becomes of a run when something happens to it: a pure table, event by event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from horarium.core.document.reader import SHIPPED
from horarium.core.document.states import FINAL, HANDED_OUT, NOT_STARTED, OPEN, RunState
from horarium.core.lifecycle.live_run import Rules
from horarium.core.lifecycle.outcome import (
    Accepted,
    Admit,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRefused,
    Asked,
    Begin,
    Block,
    Busy,
    CancelledOutside,
    CancelledUnstarted,
    Change,
    DeadlinePassed,
    End,
    Event,
    Finished,
    GivenBack,
    LaunchAnswered,
    LostLease,
    Nothing,
    NothingCause,
    Outcome,
    Progress,
    Refused,
    Reported,
    ReportedState,
    RetryLater,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    TargetAccepted,
    Terminated,
    Unknown,
    Unreachable,
    UnstorableAnswer,
    UsedResources,
    WaitedTooLong,
    WaitForTarget,
    WorkflowEnded,
)
from horarium.core.lifecycle.react import BUSY_SECONDS, react
from horarium.core.policy.approval import UNASKED, LaunchRetry, RetryCause, RetryPolicy
from horarium.core.policy.limits import RunLimits
from horarium.core.policy.queue import PolicyError
from horarium.errors import InvalidTransition
from horarium.instant import HOUR, SECOND

NOW = 1_000 * HOUR
EPOCH = 7
RULES = Rules(RetryPolicy(max_retries=2, backoff_ms=1_000), RunLimits(), LaunchRetry(3, 1_000, 8_000))
NOTHING_USED = UsedResources(0, 0, 0)


@dataclass(frozen=True)
class Run:
    run_id: bytes = b"r" * 16
    state: str = "launching"
    kind: str = "http"
    delivery: str = "at_least_once"
    attempt: int = 0
    gates_passed: int = 0
    launches: int = 1
    busy_since: int | None = None
    lease_epoch: int = EPOCH
    claimed_by: str | None = None
    lease_until: int | None = NOW + 30 * SECOND
    deadline: int | None = NOW + HOUR
    heard: bool = False
    ends_by: int | None = None
    started_at: int | None = NOW - SECOND
    used: UsedResources = NOTHING_USED
    earlier: UsedResources = NOTHING_USED


def after(event: Event, rules: Rules = RULES, **given: Any) -> Change:
    return react(Run(**given), event, rules, NOW)


def answered(outcome: Outcome, rules: Rules = RULES, **given: Any) -> Change:
    return after(LaunchAnswered(outcome, EPOCH), rules, **given)


def reported(state: str, rules: Rules = RULES, run: dict[str, Any] | None = None, **said: Any) -> Change:
    """By the target, with the token that it was handed, unless something else is said of who speaks."""
    whole = {"state": "running", "lease_until": None, **(run or {})}
    return after(Reported(ReportedState(state), **{"proven": True, **said}), rules, **whole)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────

SETTLED: dict[type, tuple[Outcome, Change]] = {
    Finished: (Finished({"n": 1}, 0.25, 7), End(RunState.SUCCEEDED, {"n": 1}, used=UsedResources(250_000, 7, 0))),
    Accepted: (Accepted("ref", queued=True), WaitForTarget("ref", True)),
    Asked: (Asked("agent_input", "Which?", "t1"), Block("agent_input", "Which?", "t1")),
    Refused: (Refused("no"), End(RunState.LAUNCH_FAILED, error="no", error_class="refused")),
    RunCancelled: (RunCancelled("asked"), End(RunState.CANCELLED, error="asked")),
}
TRIED_AGAIN: dict[type, Outcome] = {
    Busy: Busy(),
    Unreachable: Unreachable("x"),
    Unknown: Unknown("x"),
    RunFailed: RunFailed("x"),
    RunTimedOut: RunTimedOut("x"),
}
# What an outcome says about the byte that left; busy and unreachable may be said by the target itself.
SENT: dict[str, Any] = {
    "busy": Busy(sent=True),
    "rate limited": Busy(sent=True, error_class="rate_limit"),
    "not done": Unreachable("x", sent=True),
    "unknown": Unknown("x"),
    "failed": RunFailed("x", "provider_error"),
    "timed out": RunTimedOut("x"),
}


def test_every_outcome_has_a_row() -> None:
    assert set(SETTLED) | set(TRIED_AGAIN) == set(get_args(Outcome))


@pytest.mark.parametrize("kind", SETTLED, ids=lambda kind: kind.__name__)
def test_an_answer_that_settles_the_matter_does(kind: type) -> None:
    outcome, change = SETTLED[kind]
    assert answered(outcome) == change


@pytest.mark.parametrize("kind", TRIED_AGAIN, ids=lambda kind: kind.__name__)
def test_other_answers_are_tried_again_later(kind: type) -> None:
    change = answered(TRIED_AGAIN[kind])
    assert isinstance(change, RetryLater)
    assert change.ready_at > NOW


@pytest.mark.parametrize("name", SENT)
def test_at_most_once_sends_nothing_again_once_a_byte_was_sent(name: str) -> None:
    assert isinstance(answered(SENT[name], delivery="at_most_once"), End)


@pytest.mark.parametrize("outcome", [Busy(), Unreachable("gone")], ids=["busy", "unreachable"])
def test_at_most_once_may_send_what_has_not_left(outcome: Outcome) -> None:
    assert isinstance(answered(outcome, delivery="at_most_once"), RetryLater)


@pytest.mark.parametrize(
    ("outcome", "state", "error_class"),
    [
        (Unknown("?"), RunState.UNKNOWN, "unknown"),
        (RunFailed("?", "provider_error"), RunState.FAILED, "provider_error"),
        (RunTimedOut("?"), RunState.TIMED_OUT, "timeout"),
        (Busy(sent=True, error_class="rate_limit"), RunState.FAILED, "rate_limit"),
        (Busy(sent=True), RunState.SKIPPED, None),
        (Unreachable("?", sent=True), RunState.LAUNCH_FAILED, "unreachable"),
    ],
)
def test_what_it_ends_as_under_at_most_once(outcome: Outcome, state: RunState, error_class: str | None) -> None:
    change = answered(outcome, delivery="at_most_once")
    assert isinstance(change, End)
    assert (change.state, change.error_class) == (state, error_class)


def test_a_known_failure_begins_a_new_attempt() -> None:
    change = answered(RunFailed("boom", "provider_error"), attempt=1, launches=3)
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.launches, change.known, change.untouched) == (2, 0, True, False)
    assert 1_000 <= (change.ready_at - NOW) / 1_000 <= 2_000


def test_the_last_failure_is_counted_too() -> None:
    change = answered(RunFailed("boom"), attempt=2)
    assert change == End(RunState.FAILED, error="boom", attempt=3)


@pytest.mark.parametrize("outcome", [Unknown("?"), Unreachable("?")], ids=["unknown", "unreachable"])
def test_a_redelivery_counts_no_failure(outcome: Outcome) -> None:
    change = answered(outcome, attempt=1, launches=2)
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.launches, change.known) == (1, 2, False)


@pytest.mark.parametrize(
    ("outcome", "state"), [(Unreachable("gone"), RunState.LAUNCH_FAILED), (Unknown("gone"), RunState.UNKNOWN)]
)
def test_deliveries_have_a_budget_of_their_own(outcome: Outcome, state: RunState) -> None:
    change = answered(outcome, launches=3)
    assert isinstance(change, End)
    assert (change.state, change.error) == (state, "gone (retries_exhausted)")


@pytest.mark.parametrize("cause", RetryCause)
def test_only_what_the_policy_names_is_retried(cause: RetryCause) -> None:
    others = tuple(each for each in RetryCause if each is not cause)
    rules = replace(RULES, retry=RetryPolicy(max_retries=5, retry_on=others))
    assert isinstance(answered(RunFailed("x", cause), rules), End)
    assert isinstance(answered(RunFailed("x", others[0]), rules), RetryLater)


def test_a_timeout_is_retried_by_the_policy_and_is_a_timeout_if_not() -> None:
    assert isinstance(answered(RunTimedOut("late")), RetryLater)
    rules = replace(RULES, retry=RetryPolicy(max_retries=9, retry_on=(RetryCause.PROVIDER_ERROR,)))
    change = answered(RunTimedOut("late"), rules)
    assert change == End(RunState.TIMED_OUT, error="late", error_class="timeout", attempt=1)


def test_what_took_all_its_time_is_not_done_again_unasked() -> None:
    rules = replace(RULES, retry=UNASKED)
    for change in (answered(RunTimedOut("late"), rules), after(DeadlinePassed(), rules, deadline=NOW)):
        assert isinstance(change, End)
        assert change.state is RunState.TIMED_OUT
    assert isinstance(answered(RunFailed("x", "timeout"), rules), RetryLater)  # a timeout of the target's own
    capped = after(DeadlinePassed(), rules, deadline=NOW, ends_by=NOW)
    assert isinstance(capped, End)
    assert capped.cause == "runtime_cap"


def test_an_unknown_outcome_at_the_deadline_is_a_timeout() -> None:
    change = answered(Unknown("?"), deadline=NOW)
    assert isinstance(change, RetryLater)
    assert change.error_class == "timeout"


# ── busy ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_busy_target_costs_neither_a_delivery_nor_time() -> None:
    change = answered(Busy(5.0), launches=2)
    assert change == RetryLater(NOW + 5 * SECOND, 0, 1, NOW, "target busy", untouched=True, told=True)


def test_it_is_mentioned_once() -> None:
    change = answered(Busy(5.0), busy_since=NOW - SECOND)
    assert isinstance(change, RetryLater)
    assert not change.told


@pytest.mark.parametrize(("wish", "seconds"), [(None, 10), (0.0, 0.1), (-5.0, 0.1), (10**9, BUSY_SECONDS)])
def test_a_target_may_say_when_within_bounds(wish: float | None, seconds: float) -> None:
    change = answered(Busy(wish))
    assert isinstance(change, RetryLater)
    assert change.ready_at == NOW + round(seconds * SECOND)


def test_there_is_a_last_try_when_the_time_is_up() -> None:
    change = answered(Busy(115.0), busy_since=NOW - 60 * SECOND)
    assert isinstance(change, RetryLater)
    assert change.ready_at == NOW + 60 * SECOND


def test_a_target_that_stays_busy_is_skipped() -> None:
    change = answered(Busy(), busy_since=NOW - BUSY_SECONDS * SECOND)
    assert isinstance(change, End)
    assert (change.state, change.cause, change.attempt) == (RunState.SKIPPED, "target_busy", None)


def test_a_rate_limit_that_lasts_is_a_failure_for_the_policy() -> None:
    lasting: dict[str, Any] = {"busy_since": NOW - BUSY_SECONDS * SECOND}
    change = answered(Busy(sent=True, error_class="rate_limit"), **lasting)
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.error_class, change.busy_since) == (1, "rate_limit", None)
    end = answered(Busy(sent=True, error_class="rate_limit"), attempt=2, **lasting)
    assert isinstance(end, End)
    assert (end.state, end.error_class) == (RunState.FAILED, "rate_limit")


@pytest.mark.parametrize(
    ("state", "since", "ends"),
    [
        ("ready", NOW - BUSY_SECONDS * SECOND, True),
        ("ready", NOW - BUSY_SECONDS * SECOND + 1, False),
        ("ready", None, False),
        ("launching", NOW - HOUR, False),
        ("skipped", NOW - HOUR, False),
    ],
)
def test_what_finds_no_place_for_two_minutes_is_skipped(state: str, since: int | None, ends: bool) -> None:
    change = after(WaitedTooLong(), state=state, busy_since=since, lease_until=None)
    error = f"target busy for {BUSY_SECONDS} seconds"
    skipped = End(RunState.SKIPPED, error=error, cause="target_busy")
    assert change == (skipped if ends else Nothing(NothingCause.NOT_SO))


# ── who is heard ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", RunState)
def test_an_answer_counts_while_its_lease_does(state: RunState) -> None:
    change = answered(Finished(), state=state.value)
    if state in HANDED_OUT or state is RunState.READY:  # ready: the lease ran out, and nobody else has begun
        assert change == End(RunState.SUCCEEDED, used=NOTHING_USED)
    else:
        assert change == Nothing(NothingCause.TOO_LATE if state in FINAL else NothingCause.NOT_HELD)


@pytest.mark.parametrize(
    "event", [LaunchAnswered(Finished(), 6), GivenBack(6, True), UnstorableAnswer("x", 6), LostLease(6)]
)
def test_whoever_lost_the_lease_changes_nothing(event: Event) -> None:
    assert isinstance(after(event), Nothing)


@pytest.mark.parametrize(
    ("said", "run", "why"),
    [
        # Whoever shows nothing says nothing, whatever becomes of the run.
        ({}, {}, NothingCause.UNPROVEN),
        ({"by": "w"}, {"claimed_by": "w"}, NothingCause.UNPROVEN),
        ({"attempt": 0, "by": "w"}, {}, NothingCause.UNPROVEN),
        ({"attempt": 0, "by": "w"}, {"lease_until": NOW, "claimed_by": "w"}, NothingCause.UNPROVEN),
        ({}, {"state": "succeeded"}, NothingCause.UNPROVEN),
        ({}, {"state": "cancelled"}, NothingCause.UNPROVEN),
        # A lease is good for whoever claimed the run, while it lasts.
        ({"epoch": EPOCH, "by": "w"}, {"lease_until": NOW, "claimed_by": "w"}, None),
        ({"epoch": EPOCH, "by": "w"}, {"attempt": 1, "claimed_by": "w"}, None),
        ({"epoch": EPOCH, "by": "w"}, {"state": "ready", "claimed_by": "w"}, None),
        ({"epoch": EPOCH, "by": "thief"}, {"lease_until": NOW, "claimed_by": "w"}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH, "by": "thief"}, {"state": "succeeded", "claimed_by": "w"}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH, "by": "thief"}, {"lease_until": NOW, "state": "launching"}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH}, {"lease_until": NOW}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH - 1, "by": "w"}, {"claimed_by": "w"}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH, "by": "w"}, {"state": "succeeded", "claimed_by": "w"}, NothingCause.SAID_BEFORE),
        ({"epoch": EPOCH, "by": "w"}, {"state": "cancelled", "claimed_by": "w"}, NothingCause.TOO_LATE),
        # A token is good for its attempt, whoever shows it.
        ({"attempt": 0, "proven": True}, {"lease_until": NOW}, None),
        ({"attempt": 0, "proven": True}, {"lease_until": NOW, "state": "launching"}, None),
        ({"attempt": 1, "proven": True}, {"attempt": 1}, None),
        ({"attempt": 0, "proven": True}, {"attempt": 1}, NothingCause.TOO_LATE),
        ({"attempt": 0, "proven": True}, {"attempt": 1, "state": "ready"}, NothingCause.TOO_LATE),
        ({"attempt": 2, "proven": True}, {"attempt": 1}, NothingCause.NOT_HELD),
        # What was handed out before a gate was passed is not what is being done now.
        ({"attempt": 0, "gates_passed": 1, "proven": True}, {"gates_passed": 1}, None),
        ({"attempt": 0, "gates_passed": 0, "proven": True}, {"gates_passed": 1}, NothingCause.TOO_LATE),
        ({"attempt": 0, "gates_passed": 2, "proven": True}, {"gates_passed": 1}, NothingCause.NOT_HELD),
        ({"epoch": EPOCH - 1, "attempt": 0, "proven": True}, {}, NothingCause.NOT_HELD),
        ({"attempt": 0, "proven": True}, {"state": "succeeded"}, NothingCause.SAID_BEFORE),
        ({"attempt": 0, "proven": True}, {"state": "cancelled"}, NothingCause.TOO_LATE),
    ],
)
def test_which_reports_are_heard(said: dict[str, Any], run: dict[str, Any], why: NothingCause | None) -> None:
    change = reported("succeeded", run=run, **{"proven": False, **said})
    assert change == (End(RunState.SUCCEEDED, used=NOTHING_USED) if why is None else Nothing(why))


@pytest.mark.parametrize("said", ["running", "succeeded", "failed", "cancelled", "blocked"])
@pytest.mark.parametrize("state", [RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY])
def test_a_report_about_a_run_that_nobody_was_given_is_refused(state: RunState, said: str) -> None:
    if (state, said) == (RunState.AWAITING_APPROVAL, "blocked"):
        return  # it was said before
    with pytest.raises(InvalidTransition):
        reported(said, run={"state": state.value, "launches": 0}, gate="g")


@pytest.mark.parametrize("said", ["succeeded", "failed", "timed_out", "cancelled"])
def test_a_target_ends_a_run_that_waits_to_be_sent_again(said: str) -> None:
    """The outcome was unknown, and now it is not: a second delivery is spared."""
    change = reported(said, run={"state": "ready", "launches": 2}, attempt=0, proven=True)
    assert isinstance(change, End | RetryLater)
    if isinstance(change, RetryLater):
        assert change.known


def test_a_target_cannot_begin_a_run_that_waits_to_be_sent_again() -> None:
    """It would have neither lease nor deadline."""
    with pytest.raises(InvalidTransition):
        reported("running", run={"state": "ready", "launches": 2}, attempt=0, proven=True)


def test_sums_that_no_column_holds_keep_no_run_from_ending() -> None:
    most = 2**63 - 1
    change = reported("succeeded", run={"earlier": UsedResources(most, most, most)}, cost=5, tokens=5, tool_calls=5)
    assert isinstance(change, End)
    assert change.used == UsedResources(most, most, most)


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "run", "change"),
    [
        ("running", "launching", Progress(NOTHING_USED, True)),
        ("running", "queued", Progress(NOTHING_USED, True)),
        ("running", "running", Progress(NOTHING_USED, False)),
        ("blocked", "running", Block("publish")),
        ("blocked", "awaiting_approval", Nothing(NothingCause.SAID_BEFORE)),
        ("cancelled", "running", End(RunState.CANCELLED, used=NOTHING_USED)),
    ],
)
def test_what_a_report_does(state: str, run: str, change: Change) -> None:
    assert reported(state, run={"state": run}, gate="publish") == change


@pytest.mark.parametrize("state", ["failed", "timed_out"])
def test_a_reported_failure_meets_the_same_policy(state: str) -> None:
    change = reported(state, error="boom")
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.known, change.error) == (1, True, "boom")
    end = reported(state, run={"attempt": 2}, attempt=2, error="boom")
    assert isinstance(end, End)
    assert (end.state.value, end.attempt) == (state, 3)


def test_usage_is_that_of_all_attempts() -> None:
    run = {"earlier": UsedResources(5, 50, 1), "used": UsedResources(5, 50, 1)}
    assert reported("running", run=run, cost=2, tokens=7) == Progress(UsedResources(7, 57, 1), False)
    assert reported("running", run=run | {"used": UsedResources(7, 57, 1)}, cost=3) == Progress(
        UsedResources(8, 57, 1), False
    )
    change = reported("failed", run=run, cost=2)
    assert isinstance(change, RetryLater)
    assert change.used == UsedResources(7, 50, 1)


# ── caps ─────────────────────────────────────────────────────────────────────────────────────────────

CAPS: dict[str, tuple[RunLimits, dict[str, Any], dict[str, Any]]] = {
    "cost_cap": (RunLimits(cost=1), {"cost": 1_000_001}, {}),
    "tokens_cap": (RunLimits(tokens=10), {"tokens": 11}, {}),
    "tool_calls_cap": (RunLimits(tool_calls=0), {"tool_calls": 1}, {}),
    "runtime_cap": (RunLimits(runtime_seconds=5), {}, {"ends_by": NOW}),
}


@pytest.mark.parametrize("state", ["running", "succeeded", "failed"])
@pytest.mark.parametrize("cause", CAPS)
def test_whatever_is_reported_a_passed_cap_ends_the_run(cause: str, state: str) -> None:
    limits, said, run = CAPS[cause]
    change = reported(state, replace(RULES, limits=limits), run, result={"kept": True}, **said)
    assert isinstance(change, End)
    assert (change.state, change.cause, change.attempt) == (RunState.FAILED, cause, 1)
    assert change.result == (None if state == "running" else {"kept": True})


@pytest.mark.parametrize("cause", [cause for cause in CAPS if cause != "runtime_cap"])
def test_what_is_within_its_caps_goes_on(cause: str) -> None:
    limits, said, run = CAPS[cause]
    within = {name: value - 1 for name, value in said.items()}
    assert isinstance(reported("succeeded", replace(RULES, limits=limits), run, **within), End)
    assert reported("running", replace(RULES, limits=limits), run, **within) != Nothing(NothingCause.TOO_LATE)


def test_earlier_attempts_count_for_the_caps() -> None:
    rules = replace(RULES, limits=RunLimits(tokens=10))
    change = reported("succeeded", rules, {"earlier": UsedResources(0, 8, 0)}, tokens=3)
    assert isinstance(change, End)
    assert (change.cause, change.used) == ("tokens_cap", UsedResources(0, 11, 0))


def test_an_answer_at_once_is_capped_as_a_report_is() -> None:
    change = answered(Finished({"n": 1}, 2.0), replace(RULES, limits=RunLimits(cost=1)))
    assert isinstance(change, End)
    assert (change.state, change.cause, change.result) == (RunState.FAILED, "cost_cap", {"n": 1})


def test_a_retry_that_could_not_end_in_time_is_not_begun() -> None:
    change = answered(RunFailed("x"), ends_by=NOW + 1)
    assert isinstance(change, End)
    assert (change.state, change.cause) == (RunState.FAILED, "runtime_cap")


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(HANDED_OUT))
def test_a_deadline_is_a_failed_attempt(state: RunState) -> None:
    change = after(DeadlinePassed(), state=state.value, deadline=NOW)
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.error_class) == (1, "timeout")


def test_the_time_of_the_whole_run_ends_it() -> None:
    change = after(DeadlinePassed(), deadline=NOW, ends_by=NOW)
    assert isinstance(change, End)
    assert (change.state, change.cause) == (RunState.FAILED, "runtime_cap")


@pytest.mark.parametrize(
    "run",
    [{"deadline": NOW + 1}, {"deadline": None}, *({"deadline": NOW, "state": s.value} for s in FINAL | NOT_STARTED)],
)
def test_a_deadline_that_is_not_reached_any_more_changes_nothing(run: dict[str, Any]) -> None:
    assert after(DeadlinePassed(), **run) == Nothing(NothingCause.NOT_SO)


def test_a_lost_lease_is_an_unknown_outcome() -> None:
    change = after(LostLease(EPOCH), lease_until=NOW - 1)
    assert isinstance(change, RetryLater)
    assert (change.attempt, change.launches, change.known) == (0, 1, False)
    once = after(LostLease(EPOCH), lease_until=NOW - 1, delivery="at_most_once")
    assert isinstance(once, End)
    assert once.state is RunState.UNKNOWN


@pytest.mark.parametrize("until", [None, NOW, NOW + 1])
def test_a_lease_that_was_renewed_is_not_lost(until: int | None) -> None:
    assert after(LostLease(EPOCH), lease_until=until) == Nothing(NothingCause.NOT_SO)


# ── what a target goes on with ───────────────────────────────────────────────────────────────────────

RECOVERS = replace(RULES, recovers=True)


@pytest.mark.parametrize("state", RunState)
def test_the_name_that_a_target_gives_counts_while_the_lease_does(state: RunState) -> None:
    change = after(TargetAccepted("t1", EPOCH), state=state.value)
    if state in HANDED_OUT:
        assert change == Begin("t1")
    elif state is RunState.READY:  # the lease ran out: it is known where to look, and nobody is there yet
        assert change == Begin("t1", held=False)
    else:
        assert change == Nothing(NothingCause.TOO_LATE if state in FINAL else NothingCause.NOT_HELD)


def test_whoever_lost_the_run_names_nothing() -> None:
    assert after(TargetAccepted("t1", EPOCH - 1)) == Nothing(NothingCause.NOT_HELD)


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
@pytest.mark.parametrize(
    ("event", "told"), [(LostLease(EPOCH), True), (GivenBack(EPOCH, True), False)], ids=["lost", "given back"]
)
def test_what_can_be_looked_for_is_followed_under_both_kinds_of_delivery(
    event: Event, told: bool, delivery: str
) -> None:
    change = after(event, RECOVERS, delivery=delivery, lease_until=NOW - 1)
    assert isinstance(change, RetryLater)
    assert (change.follows, change.known, change.untouched, change.told) == (True, False, False, told)


def test_it_is_followed_also_after_its_deadline() -> None:
    change = after(LostLease(EPOCH), RECOVERS, lease_until=NOW - 1, deadline=NOW - SECOND)
    assert isinstance(change, RetryLater)
    assert change.follows


def test_whoever_is_lost_again_and_again_is_not_followed_for_ever() -> None:
    change = after(LostLease(EPOCH), RECOVERS, lease_until=NOW - 1, launches=3)
    assert isinstance(change, End)
    assert change.state is RunState.UNKNOWN


def test_what_was_not_begun_is_not_looked_for() -> None:
    assert after(GivenBack(EPOCH, False), RECOVERS) == RetryLater(NOW, 0, 0, untouched=True, told=False)


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_not_begun_goes_back_untouched() -> None:
    assert after(GivenBack(EPOCH, False)) == RetryLater(NOW, 0, 0, untouched=True, told=False)
    assert isinstance(after(GivenBack(EPOCH, False), delivery="at_most_once"), RetryLater)


def test_what_was_begun_is_delivered_again_or_unknown() -> None:
    change = after(GivenBack(EPOCH, True))
    assert isinstance(change, RetryLater)
    assert (change.ready_at, change.launches, change.untouched) == (NOW, 0, False)
    once = after(GivenBack(EPOCH, True), delivery="at_most_once")
    assert isinstance(once, End)
    assert once.state is RunState.UNKNOWN


@pytest.mark.parametrize("kind", SHIPPED)
def test_a_run_on_a_queue_of_this_service_has_not_started(kind: str) -> None:
    stopped = after(CancelledUnstarted("x"), state="queued", kind=kind)
    assert isinstance(stopped, End) == (kind in ("pull", "workflow"))


def test_an_answer_that_cannot_be_kept_fails() -> None:
    change = after(UnstorableAnswer("no JSON", EPOCH))
    assert isinstance(change, End)
    assert (change.state, change.error_class) == (RunState.FAILED, "unstorable_answer")


@pytest.mark.parametrize("state", RunState)
def test_each_way_to_stop_acts_where_it_may(state: RunState) -> None:
    unstarted = after(CancelledUnstarted("x"), state=state.value)
    outside = after(CancelledOutside("x"), state=state.value)
    terminated = after(Terminated("x"), state=state.value)
    expired = after(ApprovalExpired(), state=state.value)
    assert isinstance(unstarted, End) == (state in NOT_STARTED)
    assert isinstance(outside, End) == (state in HANDED_OUT)
    assert isinstance(terminated, End) == (state in OPEN)
    assert isinstance(expired, End) == (state is RunState.AWAITING_APPROVAL)
    if isinstance(terminated, End):
        assert (terminated.state is RunState.TERMINATED) == (state in HANDED_OUT)


def test_a_yes_lets_only_what_waits_for_it_go() -> None:
    waiting = Run(state=RunState.AWAITING_APPROVAL)
    assert react(waiting, ApprovalGiven(b"a", {"n": 2}, modified=True), Rules(), NOW) == Admit(
        b"a", NOW, {"n": 2}, modified=True
    )
    assert react(Run(state=RunState.RUNNING), ApprovalGiven(b"a"), Rules(), NOW) == Nothing(NothingCause.NOT_SO)


def test_a_no_ends_it_with_the_reason() -> None:
    waiting = Run(state=RunState.AWAITING_APPROVAL)
    assert react(waiting, ApprovalRefused("too early"), Rules(), NOW) == End(RunState.REJECTED, error="too early")
    superseded = react(waiting, ApprovalExpired("superseded"), Rules(), NOW)
    assert isinstance(superseded, End)
    assert (superseded.state, superseded.cause) == (RunState.EXPIRED, "superseded")


def test_a_workflow_ends_as_it_is_told_unless_a_cap_was_passed() -> None:
    going = Run(state=RunState.RUNNING, used=UsedResources(2_000_000, 0, 0))
    failed = react(going, WorkflowEnded(RunState.FAILED, {}, "a step failed", cause="step_failed"), Rules(), NOW)
    assert isinstance(failed, End)
    assert (failed.state, failed.cause, failed.attempt) == ("failed", "step_failed", 1)
    stopped = react(going, WorkflowEnded(RunState.CANCELLED, {}, "cancelled on request"), Rules(), NOW)
    assert isinstance(stopped, End)
    assert (stopped.state, stopped.attempt) == ("cancelled", 0)  # somebody's wish is no failure
    done = react(going, WorkflowEnded(RunState.SUCCEEDED, {"a": 1}), Rules(), NOW)
    assert isinstance(done, End)
    assert (done.state, done.result) == (RunState.SUCCEEDED, {"a": 1})
    capped = react(going, WorkflowEnded(RunState.SUCCEEDED, {"a": 1}), Rules(limits=RunLimits(cost=1)), NOW)
    assert isinstance(capped, End)
    assert (capped.state, capped.cause) == (RunState.FAILED, "cost_cap")


@pytest.mark.parametrize("outcome", [Finished(None, float("nan")), Finished(None, -1.0)])
def test_a_cost_that_is_none_is_said_so(outcome: Outcome) -> None:
    with pytest.raises(PolicyError):
        answered(outcome)


def test_every_event_has_a_test() -> None:
    text = Path(__file__).read_text("utf-8")
    assert [kind.__name__ for kind in get_args(Event) if f"{kind.__name__}(" not in text] == []


# ── behind a broker ──────────────────────────────────────────────────────────────────────────────────

BEHIND = replace(RULES, by_broker=True)
PATIENT = replace(BEHIND, launch_retry=LaunchRetry(1, 1_000, 8_000))


@pytest.mark.parametrize("launches", [1, 5, 400])
@pytest.mark.parametrize("outcome", [Unreachable("away"), Unknown("broke")], ids=["unreachable", "unknown"])
def test_a_broker_is_tried_until_the_deadline_however_often_that_is(outcome: Outcome, launches: int) -> None:
    change = answered(outcome, PATIENT, launches=launches)
    assert isinstance(change, RetryLater)
    assert NOW < change.ready_at <= NOW + 8 * SECOND
    assert (change.timed, change.untouched, change.known) == (True, isinstance(outcome, Unreachable), False)
    assert (change.attempt, change.launches) == (0, launches)


@pytest.mark.parametrize("left", [1, 3, 10])
def test_towards_the_deadline_the_pauses_are_halves_of_what_is_left(left: int) -> None:
    change = answered(Unreachable("away"), BEHIND, launches=9, deadline=NOW + left * SECOND)
    assert isinstance(change, RetryLater)
    assert change.ready_at <= NOW + left * SECOND // 2


OUT_OF_TIME = {
    "never sent": (Unreachable("away"), {}, RunState.LAUNCH_FAILED, "unreachable"),
    "may have arrived": (Unknown("broke"), {}, RunState.TIMED_OUT, "timeout"),
    "may have arrived before": (Unreachable("away"), {"heard": True}, RunState.TIMED_OUT, "timeout"),
}


@pytest.mark.parametrize(("outcome", "run", "state", "error_class"), OUT_OF_TIME.values(), ids=OUT_OF_TIME)
def test_a_broker_that_stays_away_ends_the_run_with_its_time(
    outcome: Outcome, run: dict[str, Any], state: RunState, error_class: str
) -> None:
    rules = replace(BEHIND, retry=UNASKED)
    change = answered(outcome, rules, deadline=NOW + SECOND // 2, **run)
    assert isinstance(change, End)
    assert (change.state, change.error_class) == (state, error_class)
    assert "(deadline_reached)" in str(change.error)


def test_what_was_never_published_in_its_time_was_not_launched() -> None:
    late = RunTimedOut("the deadline passed")
    never = answered(late, BEHIND)
    assert isinstance(never, End)
    assert (never.state, never.error_class) == (RunState.LAUNCH_FAILED, "unreachable")
    tried_again = {"heard": True}, {"state": "queued", "lease_until": None}
    assert all(isinstance(answered(late, BEHIND, **each), RetryLater) for each in tried_again)


@pytest.mark.parametrize(
    ("outcome", "again"),
    [(Unreachable("away"), True), (Unreachable("no", sent=True), False), (Unknown("broke"), False)],
    ids=["nothing sent", "refused", "may have arrived"],
)
def test_what_may_be_sent_once_is_published_again_only_while_nothing_has_left(outcome: Outcome, again: bool) -> None:
    assert isinstance(answered(outcome, BEHIND, delivery="at_most_once"), RetryLater) is again


EXCEPTIONS = {
    "an exception": ("ValueError", True),
    "of a time limit": ("TimeLimitExceeded", True),
    "a word of the policy": ("rate_limit", True),
    "nothing said": (None, True),
    "not registered": ("NotRegistered", False),
}


@pytest.mark.parametrize(("error_class", "again"), EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_the_class_of_an_exception_counts_as_an_error_of_the_provider(error_class: str | None, again: bool) -> None:
    change = reported("failed", BEHIND, error="x", error_class=error_class)
    assert isinstance(change, RetryLater) is again
    assert getattr(change, "error_class", None) == error_class
    only_timeouts = replace(BEHIND, retry=RetryPolicy(max_retries=2, retry_on=(RetryCause.TIMEOUT,)))
    other = reported("failed", only_timeouts, error="x", error_class=error_class)
    assert isinstance(other, RetryLater) is (error_class == "TimeLimitExceeded")


def test_whoever_works_on_it_may_say_so_before_it_is_known_to_be_taken() -> None:
    taken = Accepted("id", queued=True)
    assert answered(taken, BEHIND) == WaitForTarget("id", queued=True)
    assert answered(taken, BEHIND, state="running") == WaitForTarget("id", queued=False)
    assert answered(Accepted("id"), BEHIND, state="running", lease_until=None) == Nothing(NothingCause.SAID_BEFORE)
    assert answered(Accepted("id"), BEHIND, state="queued", lease_until=None) == WaitForTarget("id", queued=False)
