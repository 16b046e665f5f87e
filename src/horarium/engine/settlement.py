"""What becomes of a run after its launcher has answered: it ends, waits for a report, or is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from horarium.instant import SECOND, Instant
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
from horarium.policy.limits import MILLIONTHS
from horarium.policy.limits import parse as parse_amount
from horarium.policy.retry import GiveUp, LaunchRetry, Retry, RetryPolicy, decide_launch_retry, decide_retry
from horarium.schedule.reason import Reason
from horarium.schedule.run import Delivery, RunState
from horarium.store.closing import End
from horarium.store.runs import Work

# A target at capacity is worth waiting for, but not for ever.
BUSY_SECONDS = 120
_BUSY_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Waits:
    """The target has it: a report, a poll or the deadline will end the run."""

    reference: str | None
    queued: bool


@dataclass(frozen=True, slots=True)
class Again:
    """Back to ready. `attempt` counts known failures, `launches` the deliveries tried within the attempt."""

    ready_at: Instant
    attempt: int
    launches: int
    busy_since: Instant | None = None
    error: str | None = None


Settlement: TypeAlias = End | Waits | Again


def plan_settlement(
    outcome: Outcome, work: Work, *, key: str, retry: RetryPolicy, launch_retry: LaunchRetry, now: Instant
) -> Settlement:
    match outcome:
        case Finished(result, cost, tokens):
            return End(RunState.SUCCEEDED, result, cost=_millionths(cost), tokens=tokens)
        case Accepted(reference, queued):
            return Waits(reference, queued)
        case Refused(error):
            return End(RunState.LAUNCH_FAILED, error=error, error_class="refused")
        case Busy(retry_after):
            return _busy(work, retry_after, now)
        case Unreachable(error):
            return _deliver_again(work, error, RunState.LAUNCH_FAILED, "unreachable", key, launch_retry, now)
        case Unknown(error) if work.deadline is not None and now >= work.deadline:
            return End(RunState.TIMED_OUT, error=error, error_class="timeout")
        case Unknown(error):
            if work.delivery == Delivery.AT_MOST_ONCE:
                return End(RunState.UNKNOWN, error=error, error_class="unknown")
            return _deliver_again(work, error, RunState.UNKNOWN, "unknown", key, launch_retry, now)
        case RunFailed(error, error_class, result):
            return _retry(work, End(RunState.FAILED, result, error, error_class), key, retry, now)
        case RunTimedOut(error):
            return End(RunState.TIMED_OUT, error=error, error_class="timeout")
        case RunCancelled(error):
            return End(RunState.CANCELLED, error=error)
        case _:
            assert_never(outcome)


def plan_lost_lease(work: Work, *, key: str, launch_retry: LaunchRetry, now: Instant) -> Settlement:
    """Its holder is gone, and nobody can say what it had done: as if the launcher had answered Unknown."""
    lost = Unknown("the process that held this run was not heard of again")
    return plan_settlement(lost, work, key=key, retry=RetryPolicy(), launch_retry=launch_retry, now=now)


def plan_given_back(work: Work, now: Instant) -> Settlement:
    """At a graceful stop in the midst of it: whoever takes it next may begin at once, and nothing is counted."""
    stopped = "the process that worked on this run was stopped"
    if work.delivery == Delivery.AT_MOST_ONCE:
        return End(RunState.UNKNOWN, error=stopped, error_class="unknown")
    return Again(now, work.attempt, work.launches - 1, work.busy_since, stopped)


def plan_unstorable(wrong: Exception) -> End:
    """The work was done, and its answer is nothing that can be kept; trying again would bring the same."""
    said = f"the answer cannot be kept: {type(wrong).__name__}: {wrong}"
    return End(RunState.FAILED, error=said, error_class="unstorable_answer")


def _busy(work: Work, retry_after: float | None, now: Instant) -> Settlement:
    since = now if work.busy_since is None else work.busy_since
    if now - since >= BUSY_SECONDS * SECOND:
        error = f"the target was busy for {BUSY_SECONDS} seconds"
        return End(RunState.SKIPPED, error=error, cause=Reason.TARGET_BUSY.value)
    pause = _BUSY_PAUSE_SECONDS if retry_after is None else min(max(retry_after, 0.1), BUSY_SECONDS)
    # However long the target wants us to wait, there is a last try when the time is up.
    again = min(now + int(pause * SECOND), since + BUSY_SECONDS * SECOND)
    # Nothing was delivered, so nothing is counted.
    return Again(again, work.attempt, work.launches - 1, since, "the target is busy")


def _deliver_again(
    work: Work, error: str, end: RunState, error_class: str, key: str, launch_retry: LaunchRetry, now: Instant
) -> Settlement:
    choice = decide_launch_retry(launch_retry, attempt=work.launches, deadline=work.deadline, now=now, key=key)
    match choice:
        case Retry(at):
            return Again(at, work.attempt, work.launches, error=error)
        case GiveUp(reason):
            return End(end, error=f"{error} ({reason})", error_class=error_class)
        case _:
            assert_never(choice)


def _retry(work: Work, end: End, key: str, retry: RetryPolicy, now: Instant) -> Settlement:
    failures = work.attempt + 1
    choice = decide_retry(
        retry, attempt=failures, error_class=end.error_class, deadline=work.deadline, now=now, key=key
    )
    match choice:
        case Retry(at):
            return Again(at, failures, 0, error=end.error)
        case GiveUp():
            return end
        case _:
            assert_never(choice)


def _millionths(cost: float | None) -> int | None:
    return None if cost is None else int(parse_amount(cost, "cost") * MILLIONTHS)
