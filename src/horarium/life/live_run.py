"""What the life of a run depends on: the run as it is, and what its definition says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from horarium.instant import Instant
from horarium.life.change import Used
from horarium.policy.limits import RunLimits
from horarium.policy.retry import LaunchRetry, RetryPolicy
from horarium.schedule.kinds import CELERY, PROMPT, PULLED
from horarium.schedule.run import NOT_STARTED, RunState


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
    def used(self) -> Used: ...
    @property
    def earlier(self) -> Used: ...


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
