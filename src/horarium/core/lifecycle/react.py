"""Transition of a run on an event: one function of the run, the event, the rules and the moment.

Every kind of failure meets here: an answer, a report and a deadline are checked in the same order. Is the speaker
authorised? Has a cap been passed? May it be sent again? Does the retry policy allow another attempt?

| event                       | the run ends as               | unless                                          |
|-----------------------------|-------------------------------|-------------------------------------------------|
| done                        | succeeded                     | a cap was passed: failed, the cap is the cause  |
| failed                      | failed                        | the retry policy has another attempt            |
| out of time                 | timed_out                     | likewise, if it retries `timeout`               |
| out of the run's whole time | failed, cause runtime_cap     | –                                               |
| unreachable                 | launch_failed                 | the budget of the launch has another attempt    |
| unknown                     | unknown                       | likewise, and it may be delivered twice         |
| … of a broker               | launch_failed, or timed_out   | there is time left: the budget is its deadline  |
| busy for two minutes        | skipped, cause target_busy    | busy is a failure here: as failed               |
| without its holder          | unknown                       | its launcher can look up its state              |

Under `at_most_once` nothing is sent again once a byte of it was sent, whatever the policies say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from horarium.core.document.states import (
    FINAL,
    HANDED_OUT,
    NOT_STARTED,
    Delivery,
    Reason,
    RunState,
    check_transition,
    state_after_termination,
)
from horarium.core.lifecycle.live_run import (
    LiveRun,
    Rules,
    end_by_cap,
    has_not_started,
    ignored_report,
    in_one_of,
    lost_lease,
    of_holder,
    used_by,
    used_with,
)
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
from horarium.core.policy.approval import (
    GiveUp,
    Retry,
    RetryCause,
    RetryOutcome,
    cause_of_exception,
    decide_launch_retry,
    decide_launch_until,
    decide_retry,
)
from horarium.errors import InvalidTransition
from horarium.instant import SECOND, Instant

# A target at capacity is worth waiting for, but not for ever.
BUSY_SECONDS = 120
_BUSY_PAUSE_SECONDS = 10.0
_BUSY_TOO_LONG = f"target busy for {BUSY_SECONDS} seconds"


def react(run: LiveRun, event: Event, rules: Rules, now: Instant) -> Change:
    """Raises InvalidTransition for a report about a run that nobody was given."""
    match event:
        case LaunchAnswered(outcome, epoch):
            return of_holder(run, epoch) or _answered(run, outcome, rules, now)
        case TargetAccepted(reference, epoch):
            # A lease that ran out is not ours again by that: who takes the run next follows what has the name.
            return of_holder(run, epoch) or Begin(reference, held=run.state in HANDED_OUT)
        case Reported():
            return ignored_report(run, event) or _reported(run, event, rules, now)
        case LostLease(epoch):
            return lost_lease(run, epoch, now) or _without_holder(run, rules, now)
        case GivenBack(epoch, begun):
            return of_holder(run, epoch) or _given_back(run, begun, rules, now)
        case UnstorableAnswer(error, epoch):
            said = f"the result cannot be stored: {error}"
            return of_holder(run, epoch) or _failure_end(run, RunState.FAILED, said, "unstorable_answer")
        case DeadlinePassed():
            return _deadline(run, rules, now)
        case WaitedTooLong():
            return _waited(run, now)
        case CancelledUnstarted(error, cause):
            cancelled = End(RunState.CANCELLED, error=error, cause=cause)
            return cancelled if has_not_started(run) else Nothing(NothingCause.NOT_SO)
        case CancelledOutside(error):
            return in_one_of(run, HANDED_OUT) or End(RunState.CANCELLED, error=error)
        case Terminated(error, cause):
            ended = Nothing(NothingCause.SAID_BEFORE) if run.state in FINAL else None
            return ended or End(state_after_termination(RunState(run.state)), error=error, cause=cause)
        case ApprovalExpired(cause):
            return in_one_of(run, _AWAITING) or End(RunState.EXPIRED, error=_unanswered(cause), cause=cause)
        case ApprovalGiven(approval_id, inputs, modified):
            return in_one_of(run, _AWAITING) or Admit(approval_id, now, inputs, modified)
        case ApprovalRefused(reason):
            return in_one_of(run, _AWAITING) or End(RunState.REJECTED, error=reason or "rejected")
        case WorkflowEnded():
            return in_one_of(run, HANDED_OUT) or _workflow_ended(run, event, rules, now)
        case _:
            assert_never(event)


def _unanswered(cause: str | None) -> str:
    return "the approval request expired" if cause is None else f"the run was {cause} before it was approved"


def _workflow_ended(run: LiveRun, event: WorkflowEnded, rules: Rules, now: Instant) -> Change:
    """Its steps were retried one by one; the whole is not."""
    attempt = run.attempt + 1 if event.state is RunState.FAILED else run.attempt
    end = End(event.state, event.result, event.error, event.error_class, event.cause, attempt=attempt)
    return _done(run, end, rules, now) if event.state is RunState.SUCCEEDED else end


_SILENT = "the lease expired: the process that held this run stopped responding"
_APPROVAL_PENDING = (RunState.AWAITING_APPROVAL, ReportedState.BLOCKED)
_AWAITING = frozenset({RunState.AWAITING_APPROVAL})


# ── what was said ────────────────────────────────────────────────────────────────────────────────────


def _answered(run: LiveRun, outcome: Outcome, rules: Rules, now: Instant) -> Change:
    match outcome:
        case Finished(result):
            used = used_with(run, outcome)
            return _done(run, End(RunState.SUCCEEDED, result, used=used), rules, now)
        case Accepted(reference, queued):
            return _accepted(run, reference, queued)
        case Asked(gate, question, reference):
            return Block(gate, question, reference)
        case Refused(error):
            return End(RunState.LAUNCH_FAILED, error=error, error_class="refused")
        case Busy():
            return _busy(run, outcome, rules, now)
        case Unreachable(error, sent):
            return _unreachable(run, error, sent, rules, now)
        case Unknown(error):
            return _unknown(run, error, rules, now)
        case RunFailed(error, error_class, result):
            end = _failure_end(run, RunState.FAILED, error, error_class, result)
            said = (outcome.cost, outcome.tokens, outcome.tool_calls) != (None, None, None)
            return _failed(run, replace(end, used=used_with(run, outcome)) if said else end, rules, now)
        case RunTimedOut(error):
            if rules.by_broker and run.state == RunState.LAUNCHING and not run.heard:  # no message of it has left
                return End(RunState.LAUNCH_FAILED, error=error, error_class="unreachable")
            return _timed_out(run, error, rules, now)
        case RunCancelled(error):
            return End(RunState.CANCELLED, error=error)
        case _:
            assert_never(outcome)


def _accepted(run: LiveRun, reference: str | None, queued: bool) -> Change:
    """Whoever works on it may have said so before we hear that it was taken."""
    begun = run.state == RunState.RUNNING
    return (
        Nothing(NothingCause.SAID_BEFORE)
        if begun and run.lease_until is None
        else WaitForTarget(reference, queued and not begun)
    )


def _reported(run: LiveRun, report: Reported, rules: Rules, now: Instant) -> Change:
    if _state(run) in NOT_STARTED and (run.state, report.state) != _APPROVAL_PENDING:
        raise InvalidTransition(f"this run is not dispatched; its state is {run.state}")
    used = used_by(run, report.cost, report.tokens, report.tool_calls)
    match report.state:
        case ReportedState.RUNNING:
            return _progress(run, used, rules, now)
        case ReportedState.BLOCKED:
            if run.state == RunState.AWAITING_APPROVAL:
                return Nothing(NothingCause.SAID_BEFORE)
            check_transition(RunState(run.state), RunState.AWAITING_APPROVAL)
            return Block(report.gate or "")
        case ReportedState.SUCCEEDED:
            check_transition(_state(run), RunState.SUCCEEDED)
            return _done(run, End(RunState.SUCCEEDED, report.result, report.error, used=used), rules, now)
        case ReportedState.FAILED | ReportedState.TIMED_OUT:
            state = RunState(report.state.value)
            check_transition(_state(run), state)
            error_class = RetryCause.TIMEOUT.value if state is RunState.TIMED_OUT else report.error_class
            end = _failure_end(run, state, report.error, error_class, report.result)
            return _failed(run, replace(end, used=used), rules, now)
        case ReportedState.CANCELLED:
            check_transition(_state(run), RunState.CANCELLED)
            return End(RunState.CANCELLED, report.result, report.error, report.error_class, used=used)
        case _:
            assert_never(report.state)


def _state(run: LiveRun) -> RunState:
    """For an end: a run that waits to be sent again was given to its target, though nobody could tell; now it tells."""
    given = run.state == RunState.READY and run.launches > 0
    return RunState.LAUNCHING if given else RunState(run.state)


def _progress(run: LiveRun, used: UsedResources, rules: Rules, now: Instant) -> Change:
    begins = run.state != RunState.RUNNING
    if begins:
        check_transition(RunState(run.state), RunState.RUNNING)
    capped = end_by_cap(run, used, rules, now)
    return capped or Progress(used, begins)


def _given_back(run: LiveRun, begun: bool, rules: Rules, now: Instant) -> Change:
    """Whoever takes it next may begin at once, and nothing is counted."""
    if not begun:
        return RetryLater(now, run.attempt, run.launches - 1, run.busy_since, untouched=True, told=False)
    stopped = "the process that executed this run was stopped"
    if rules.recovers:
        return RetryLater(now, run.attempt, run.launches - 1, run.busy_since, stopped, told=False, follows=True)
    if run.delivery == Delivery.AT_MOST_ONCE:
        return End(RunState.UNKNOWN, error=stopped, error_class="unknown")
    return RetryLater(now, run.attempt, run.launches - 1, run.busy_since, stopped)


def _deadline(run: LiveRun, rules: Rules, now: Instant) -> Change:
    if run.state not in HANDED_OUT or run.deadline is None or run.deadline > now:
        return Nothing(NothingCause.NOT_SO)
    return _timed_out(run, "the run did not end before its deadline", rules, now)


# ── what it leads to ─────────────────────────────────────────────────────────────────────────────────


def _done(run: LiveRun, end: End, rules: Rules, now: Instant) -> Change:
    """A cap that was passed on the way is no success; the result is kept, since the work was done."""
    used = run.used if end.used is None else end.used
    capped = end_by_cap(run, used, rules, now)
    return end if capped is None else replace(capped, result=end.result)


def _failed(run: LiveRun, end: End, rules: Rules, now: Instant) -> Change:
    """The one home of retries. `end` is what it comes to if there is none."""
    used = run.used if end.used is None else end.used
    capped = end_by_cap(run, used, rules, now)
    if capped is not None:
        return replace(capped, result=end.result, error=end.error or capped.error)
    if run.delivery == Delivery.AT_MOST_ONCE:
        return end
    failures = run.attempt + 1
    cause = cause_of_exception(end.error_class) if rules.by_broker else end.error_class
    choice = decide_retry(
        rules.retry, attempt=failures, error_class=cause, deadline=run.ends_by, now=now, key=run.run_id.hex()
    )
    match choice:
        case Retry(at):
            return RetryLater(at, failures, 0, error=end.error, error_class=end.error_class, used=used, known=True)
        case GiveUp(reason):
            # No time is left for the try that the policy would have had.
            return replace(end, cause="runtime_cap") if reason == "deadline_reached" else end
        case _:
            assert_never(choice)


def _timed_out(run: LiveRun, error: str, rules: Rules, now: Instant) -> Change:
    end = _failure_end(run, RunState.TIMED_OUT, error, RetryCause.TIMEOUT.value)
    if rules.retry.unasked:
        return end_by_cap(run, run.used, rules, now) or end
    return _failed(run, end, rules, now)


def _busy(run: LiveRun, busy: Busy, rules: Rules, now: Instant) -> Change:
    since = now if run.busy_since is None else run.busy_since
    once = busy.sent and run.delivery == Delivery.AT_MOST_ONCE
    if once or now - since >= BUSY_SECONDS * SECOND:
        error = "target busy" if once else _BUSY_TOO_LONG
        if busy.error_class is not None:
            return _failed(run, _failure_end(run, RunState.FAILED, error, busy.error_class), rules, now)
        return End(RunState.SKIPPED, error=error, cause=Reason.TARGET_BUSY.value)
    wish = busy.retry_after_seconds
    pause = _BUSY_PAUSE_SECONDS if wish is None else min(max(wish, 0.1), BUSY_SECONDS)
    # However long the target wants us to wait, there is a last try when the time is up.
    again = min(now + int(pause * SECOND), since + BUSY_SECONDS * SECOND)
    # Nothing was delivered, so nothing is counted; the run's events mention the first time only.
    first = run.busy_since is None
    return RetryLater(again, run.attempt, run.launches - 1, since, "target busy", untouched=True, told=first)


def _waited(run: LiveRun, now: Instant) -> Change:
    """The run was never sent, so no response reported that the target is busy."""
    since = run.busy_since
    if run.state != RunState.READY or since is None or now - since < BUSY_SECONDS * SECOND:
        return Nothing(NothingCause.NOT_SO)
    return End(RunState.SKIPPED, error=_BUSY_TOO_LONG, cause=Reason.TARGET_BUSY.value)


def _unreachable(run: LiveRun, error: str, sent: bool, rules: Rules, now: Instant) -> Change:
    if sent and run.delivery == Delivery.AT_MOST_ONCE:
        return End(RunState.LAUNCH_FAILED, error=error, error_class="unreachable")
    end = End(RunState.LAUNCH_FAILED, error=error, error_class="unreachable")
    if rules.by_broker and run.deadline is not None:
        return _published_again(run, end, run.deadline, rules, now)
    choice = decide_launch_retry(rules.launch_retry, attempt=run.launches, deadline=None, now=now, key=run.run_id.hex())
    return _deliver_again(run, choice, end, untouched=True)


def _unknown(run: LiveRun, error: str, rules: Rules, now: Instant) -> Change:
    if run.deadline is not None and now >= run.deadline:
        return _timed_out(run, error, rules, now)
    end = End(RunState.UNKNOWN, error=error, error_class="unknown")
    if run.delivery == Delivery.AT_MOST_ONCE:
        return end
    if rules.by_broker and run.deadline is not None:
        return _published_again(run, end, run.deadline, rules, now)
    choice = decide_launch_retry(
        rules.launch_retry, attempt=run.launches, deadline=run.ends_by, now=now, key=run.run_id.hex()
    )
    return _deliver_again(run, choice, end, untouched=False)


def _published_again(run: LiveRun, end: End, deadline: Instant, rules: Rules, now: Instant) -> Change:
    """`end` is what it comes to where none of the messages can have arrived; its time runs on meanwhile."""
    arrived = run.heard or end.state is RunState.UNKNOWN
    choice = decide_launch_until(
        rules.launch_retry, attempt=run.launches, deadline=deadline, now=now, key=run.run_id.hex()
    )
    if isinstance(choice, GiveUp) and arrived:
        return _timed_out(run, f"{end.error} ({choice.reason})", rules, now)
    change = _deliver_again(run, choice, end, untouched=end.state is RunState.LAUNCH_FAILED)
    return replace(change, timed=True) if isinstance(change, RetryLater) else change


def _without_holder(run: LiveRun, rules: Rules, now: Instant) -> Change:
    """Nobody knows what became of it. Where that can be found out it is looked for: nothing is sent by that."""
    if not rules.recovers:
        return _unknown(run, _SILENT, rules, now)
    choice = decide_launch_retry(rules.launch_retry, attempt=run.launches, deadline=None, now=now, key=run.run_id.hex())
    change = _deliver_again(run, choice, End(RunState.UNKNOWN, error=_SILENT, error_class="unknown"), untouched=False)
    return replace(change, follows=True) if isinstance(change, RetryLater) else change


def _deliver_again(run: LiveRun, choice: RetryOutcome, end: End, *, untouched: bool) -> Change:
    match choice:
        case Retry(at):
            return RetryLater(
                at, run.attempt, run.launches, error=end.error, error_class=end.error_class, untouched=untouched
            )
        case GiveUp(reason):
            return replace(end, error=f"{end.error} ({reason})")
        case _:
            assert_never(choice)


def _failure_end(
    run: LiveRun, state: RunState, error: str | None, error_class: str | None, result: object = None
) -> End:
    return End(state, result, error, error_class, attempt=run.attempt + 1)
