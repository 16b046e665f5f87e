"""Facts about a run that its lifecycle depends on: rules, usage, authorised speakers, and the invariants of stored
runs.

Usage is counted over all attempts and compared with the caps. A report counts from the holder of the lease, or with
the token of an attempt, and not too late.

A process that holds a run speaks with its target, and tells it of a stop and of the deadline, if it can be reached
then. Runs are also ended by those who cannot speak with it: by a person who terminates them, by an approval that
expires, by a process that is gone. What such a target has begun is left behind.

Every transaction keeps the invariants; a check of all runs verifies them, in case a row was changed by hand or
restored, or the service has a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from horarium.core.document.reader import CELERY, PROMPT, PULLED
from horarium.core.document.states import FINAL, HANDED_OUT, NOT_STARTED, OPEN, RunState
from horarium.core.lifecycle.outcome import (
    Change,
    End,
    Finished,
    Nothing,
    NothingCause,
    Reported,
    RetryLater,
    RunFailed,
    UsedResources,
)
from horarium.core.policy.approval import LaunchRetry, RetryCause, RetryPolicy
from horarium.core.policy.limits import LimitUsage, RunLimits, credits_of, exceeded_limit, millionths
from horarium.core.policy.queue import MAX_LONG
from horarium.instant import Instant

# ── Runs and rules ────────────────────────────────────────────────────────────────────────────────────


class LiveRun(Protocol):
    """State of a run that its next change depends on. Usage counts all attempts; `earlier` the finished ones.

    `claimed_by` is the external worker that took it from a queue in this delivery, None = there is none.
    """

    @property
    def run_id(self) -> bytes: ...
    @property
    def state(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def delivery(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def gates_passed(self) -> int: ...
    @property
    def launches(self) -> int: ...
    @property
    def busy_since(self) -> Instant | None: ...
    @property
    def lease_epoch(self) -> int: ...
    @property
    def claimed_by(self) -> str | None: ...
    @property
    def lease_until(self) -> Instant | None: ...
    @property
    def deadline(self) -> Instant | None: ...
    @property
    def heard(self) -> bool: ...
    @property
    def ends_by(self) -> Instant | None: ...
    @property
    def started_at(self) -> Instant | None: ...
    @property
    def used(self) -> UsedResources: ...
    @property
    def earlier(self) -> UsedResources: ...


def has_not_started(run: LiveRun) -> bool:
    """Nothing outside the service has the run, so it can end without a message to a target."""
    return run.state in NOT_STARTED or (run.state == RunState.QUEUED and run.kind in PULLED)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules from the definition of a run."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: RunLimits = field(default_factory=RunLimits)
    launch_retry: LaunchRetry = field(default_factory=LaunchRetry)
    recovers: bool = False
    """Its launcher can find the outcome of a delivery without a second delivery."""
    by_broker: bool = False
    """A broker delivers the run to the worker. An unreachable broker is retried until the deadline, within
    which the work must be done anyway; and a failure is called by the class of the exception."""


def rules_for(kind: str, retry: RetryPolicy, limits: RunLimits, launch_retry: LaunchRetry | None = None) -> Rules:
    """Rules for a run of this kind of action."""
    return Rules(
        retry,
        limits,
        launch_retry or LaunchRetry(),
        recovers=kind == PROMPT.name,
        by_broker=kind == CELERY.name,
    )


# For a run whose definition cannot be read: what went wrong once is not tried again.
NO_RULES = Rules(retry=RetryPolicy(max_retries=0))


# ── Usage ─────────────────────────────────────────────────────────────────────────────────────────────


def used_with(run: LiveRun, said: Finished | RunFailed) -> UsedResources:
    cost = None if said.cost is None else millionths(said.cost, "cost")
    return used_by(run, cost, said.tokens, said.tool_calls)


def used_by(run: LiveRun, cost: int | None, tokens: int | None, tool_calls: int | None) -> UsedResources:
    """A target knows its own attempt only: what the earlier ones used comes on top."""
    before, so_far = run.earlier, run.used
    return UsedResources(
        so_far.cost if cost is None else _sum(before.cost, cost),
        so_far.tokens if tokens is None else _sum(before.tokens, tokens),
        so_far.tool_calls if tool_calls is None else _sum(before.tool_calls, tool_calls),
    )


def _sum(before: int, more: int) -> int:
    """Add, limited to what a column can hold: a sum must not keep a run from ending."""
    return min(before + more, MAX_LONG) if more <= MAX_LONG else more


def end_by_cap(run: LiveRun, used: UsedResources, rules: Rules, now: Instant) -> End | None:
    """End a run that exceeded a limit; None = it is within all limits."""
    cause = "runtime_cap" if run.ends_by is not None and now >= run.ends_by else _passed(used, rules.limits)
    if cause is None:
        return None
    error = f"the run exceeded its {cause.replace('_', ' ')}"
    return End(RunState.FAILED, error=error, cause=cause, used=used, attempt=run.attempt + 1)


def _passed(used: UsedResources, limits: RunLimits) -> str | None:
    if limits.cost is None and limits.tokens is None and limits.tool_calls is None:
        return None
    usage = LimitUsage(cost=credits_of(used.cost), tokens=used.tokens, tool_calls=used.tool_calls)
    return exceeded_limit(replace(limits, runtime_seconds=None), usage)


# ── Speakers ──────────────────────────────────────────────────────────────────────────────────────────


# A lease that ran out while nobody else had begun: its holder's answer still counts, and spares a second delivery.
_OPEN_TO_HOLDER = HANDED_OUT | {RunState.READY}


def of_holder(run: LiveRun, epoch: int) -> Nothing | None:
    if run.state in FINAL:
        return Nothing(NothingCause.TOO_LATE)
    if run.lease_epoch != epoch or run.state not in _OPEN_TO_HOLDER:
        return Nothing(NothingCause.NOT_HELD)
    return None


def lost_lease(run: LiveRun, epoch: int, now: Instant) -> Nothing | None:
    lost = run.lease_epoch == epoch and run.lease_until is not None and run.lease_until < now
    return None if lost and run.state in HANDED_OUT else Nothing(NothingCause.NOT_SO)


def in_one_of(run: LiveRun, states: frozenset[RunState]) -> Nothing | None:
    return None if run.state in states else Nothing(NothingCause.NOT_SO)


def ignored_report(run: LiveRun, report: Reported) -> Nothing | None:
    """A run listens to its holder, who names the lease, and to whoever shows the token of an attempt.

    The number of a lease can be guessed, so it is good for whoever claimed the run and for nobody else.
    """
    if report.epoch is None and not report.proven:
        return Nothing(NothingCause.UNPROVEN)
    if not report.proven and (report.by is None or report.by != run.claimed_by):
        return Nothing(NothingCause.NOT_HELD)
    if run.state in FINAL:
        return Nothing(NothingCause.SAID_BEFORE if report.state == run.state else NothingCause.TOO_LATE)
    if report.epoch is not None and report.epoch != run.lease_epoch:
        return Nothing(NothingCause.NOT_HELD)
    if report.attempt is not None and report.attempt != run.attempt:
        return Nothing(NothingCause.TOO_LATE if report.attempt < run.attempt else NothingCause.NOT_HELD)
    if report.gates_passed is not None and report.gates_passed != run.gates_passed:
        return Nothing(NothingCause.TOO_LATE if report.gates_passed < run.gates_passed else NothingCause.NOT_HELD)
    return None


# ── Work left behind ──────────────────────────────────────────────────────────────────────────────────


# The target itself has said that it is over.
_REPORTED_BY_TARGET = frozenset({RunState.SUCCEEDED, RunState.FAILED})


def is_left_behind(change: Change) -> bool:
    """Tell whether the target may still work on a run whose work it has a name for.

    A repeated cancellation is harmless, so the answer is True in doubt.
    """
    match change:
        case End(state=RunState.FAILED, cause=cause):
            return cause is not None  # a limit has ended it, and not its target
        case End(state=state):
            return state not in _REPORTED_BY_TARGET
        case RetryLater(known=True, error_class=RetryCause.TIMEOUT.value):
            return True  # the next attempt is another task
        case _:
            return False


def is_to_be_ended(change: Change, *, running: bool) -> bool:
    """Tell whether a worker must be stopped that may be executing the run from a broker.

    A cancellation only revokes the message. A terminated run must be stopped, and so must a run that a timeout or a
    limit has ended while it is known to be `running`: a message that no worker received has expired.
    """
    match change:
        case End(state=RunState.TERMINATED):
            return True
        case End(state=RunState.FAILED, cause=cause):
            return running and cause is not None
        case End(state=RunState.TIMED_OUT) | RetryLater(known=True, error_class=RetryCause.TIMEOUT.value):
            return running
        case _:
            return False


# ── Invariants ────────────────────────────────────────────────────────────────────────────────────────


class Unsound(StrEnum):
    """Faults of a run."""

    STUCK = "stuck"  # it can neither move nor end
    OUTLIVES = "outlives"  # the workflow that it is a step of has ended, or is gone
    UNREADABLE = "unreadable"  # a value of its row cannot be read
    UNAPPROVED = "unapproved"  # it was let go, and nobody has said yes to its inputs


@dataclass(frozen=True, slots=True)
class RecordedApproval:
    """Approval that released the run, compared with this run and its inputs."""

    yes: bool
    same_run: bool
    same_inputs: bool


@dataclass(frozen=True, slots=True)
class StoredRunFacts:
    """`parent` is the state of the run that it is a step of, None = it is gone; of a root it is not asked."""

    state: RunState
    is_step: bool = False
    parent: RunState | None = None
    is_workflow: bool = False
    has_open_steps: bool = False
    has_changes: bool = False
    is_asked_about: bool = False
    is_to_stop: bool = False
    needs_approval: bool = False
    answer: RecordedApproval | None = None


# Where a run that waits for a yes can be, or can end, without one.
_WITHOUT_YES = frozenset(
    {
        RunState.HELD,
        RunState.AWAITING_APPROVAL,
        RunState.REJECTED,
        RunState.EXPIRED,
        RunState.CANCELLED,
        RunState.SKIPPED,
    }
)


def unsound(run: StoredRunFacts) -> tuple[Unsound, ...]:
    found = []
    if _is_stuck(run):
        found.append(Unsound.STUCK)
    if run.is_step and run.state in OPEN and (run.parent is None or run.parent in FINAL):
        found.append(Unsound.OUTLIVES)
    if run.needs_approval and run.state not in _WITHOUT_YES and not _has_yes(run.answer):
        found.append(Unsound.UNAPPROVED)
    return tuple(found)


def _is_stuck(run: StoredRunFacts) -> bool:
    """Whoever is asked to stop is ended by the janitor. What runs outside has a lease or a deadline."""
    if run.state is RunState.AWAITING_APPROVAL:
        return not (run.is_asked_about or run.is_to_stop)
    return run.state is RunState.RUNNING and run.is_workflow and not (run.has_open_steps or run.has_changes)


def _has_yes(answer: RecordedApproval | None) -> bool:
    return answer is not None and answer.yes and answer.same_run and answer.same_inputs
