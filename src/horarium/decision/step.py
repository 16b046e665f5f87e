"""What `advance` knows of the steps of a workflow run, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from horarium.instant import Instant
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import RunLimits
from horarium.policy.names import shown
from horarium.policy.retry import RetryPolicy
from horarium.schedule.json_limits import Json
from horarium.schedule.reason import Reason
from horarium.schedule.run import RunState

# Outcomes of work that was done badly; trying again may mend them. A launch has a retry budget of its own.
RETRYABLE = frozenset({RunState.FAILED, RunState.TIMED_OUT})
# Nobody else may take over a step that a person refused, or one that may have been done (`unknown`).
REASSIGNABLE = RETRYABLE | {RunState.LAUNCH_FAILED}
FAILURES = REASSIGNABLE | {RunState.UNKNOWN, RunState.REJECTED, RunState.EXPIRED}
STOPPED = frozenset({RunState.CANCELLED, RunState.TERMINATED})


class SkipReason(StrEnum):
    PARENT_NOT_SUCCESSFUL = "parent_not_successful"
    BRANCH_NOT_TAKEN = "branch_not_taken"
    WORKFLOW_HALTED = "workflow_halted"
    RUN_CANCELLED = "run_cancelled"
    RUN_CAP_REACHED = "run_cap_reached"


class EndCause(StrEnum):
    """Why a root did not succeed; the caps of `policy.limits` are causes too."""

    STEP_FAILED = "step_failed"
    STEP_CANCELLED = "step_cancelled"
    CANCEL_REQUESTED = "cancel_requested"


STOP_REASONS = frozenset({SkipReason.WORKFLOW_HALTED, SkipReason.RUN_CANCELLED, SkipReason.RUN_CAP_REACHED})


@dataclass(frozen=True, slots=True)
class StepFact:
    """The newest run of a node. A failure is given as it was reported: it is written if it is not retried.

    `attempt` counts the known failures, this one included. `gate` is what a running step says it is blocked
    by; approval clears it. `cause` is the reason of a skip.
    """

    node_id: str
    run_id: str
    state: RunState
    attempt: int = 0
    result: Json = None
    error_class: str | None = None
    gate: str | None = None
    assignee_id: str | None = None
    fallen_back: bool = False
    stop_requested: bool = False
    cause: str | None = None

    def __post_init__(self) -> None:
        # A failure that is not counted would be retried for ever.
        if self.attempt < (1 if self.state in RETRYABLE else 0):
            raise ValueError(f"the step {shown(self.node_id)} is {self.state}, but its attempt is {self.attempt}")

    @property
    def failed(self) -> bool:
        return self.state in FAILURES or self._turned_away

    @property
    def reassignable(self) -> bool:
        return self.state in REASSIGNABLE or self._turned_away

    @property
    def stopped(self) -> bool:
        return self.state in STOPPED or (self.state is RunState.SKIPPED and self.cause in STOP_REASONS)

    @property
    def _turned_away(self) -> bool:
        # Its turn had come and its target had no room: unlike other skips, this is work that was not done.
        return self.state is RunState.SKIPPED and self.cause == Reason.TARGET_BUSY


@dataclass(frozen=True, slots=True)
class RunPolicies:
    """What holds for the run, precedence already applied; a node's own retry policy goes before `retry`."""

    approval: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    failure: FailurePolicy = field(default_factory=FailurePolicy)
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True)
class StepBirth:
    """`state` is ready or awaiting_approval; without an assignee it is the root's who works.

    `replaces` is the failed run of the same node whose place a fallback takes.
    """

    node_id: str
    state: RunState
    inputs: Json
    assignee_id: str | None = None
    gates: tuple[str, ...] = ()
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class StepRetry:
    """The same run becomes ready again, not before `at`."""

    node_id: str
    run_id: str
    attempt: int
    at: Instant


@dataclass(frozen=True, slots=True)
class StepWait:
    """A running step came to a gate and awaits approval."""

    node_id: str
    run_id: str
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepSkip:
    node_id: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class RootEnd:
    """`result` maps each leaf that succeeded to its result, also where the root as a whole did not."""

    state: RunState
    result: Mapping[str, Json]
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """`cancels` are runs that end as cancelled now; `stops` are asked to end and count until they did."""

    births: tuple[StepBirth, ...] = ()
    retries: tuple[StepRetry, ...] = ()
    waits: tuple[StepWait, ...] = ()
    skips: tuple[StepSkip, ...] = ()
    cancels: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    root: RootEnd | None = None
