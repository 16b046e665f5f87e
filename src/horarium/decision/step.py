"""What `advance` knows of the steps of a workflow run, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from horarium.policy.failure import FailurePolicy
from horarium.schedule.json_limits import Json
from horarium.schedule.reason import Reason
from horarium.schedule.run import RunState

# Outcomes of work that was done badly. A launch has a retry budget of its own.
RETRYABLE = frozenset({RunState.FAILED, RunState.TIMED_OUT})
# Nobody else may take over a step that a person refused, or one that may have been done (`unknown`).
REASSIGNABLE = RETRYABLE | {RunState.LAUNCH_FAILED}
FAILURES = REASSIGNABLE | {RunState.UNKNOWN, RunState.REJECTED, RunState.EXPIRED}
STOPPED = frozenset({RunState.CANCELLED, RunState.TERMINATED})
# What a step was to be given could not be had: whoever took it over would get no more.
CONTRACT_VIOLATED = "contract_violated"


class Standing(StrEnum):
    """State of a node: the letter that a run stores for it, in the order of the document."""

    UNDECIDED = "."
    OPEN = "o"
    FALLEN_BACK = "r"  # open again: somebody else has taken it over
    SUCCEEDED = "s"
    FAILED = "f"
    SKIPPED = "k"  # a way that was not taken, or that led nowhere
    STOPPED = "c"  # cancelled, terminated, or never begun because the run was stopped


class SkipReason(StrEnum):
    PARENT_NOT_SUCCESSFUL = "parent_not_successful"
    BRANCH_NOT_TAKEN = "branch_not_taken"
    WORKFLOW_HALTED = "workflow_halted"
    RUN_CANCELLED = "run_cancelled"
    RUN_CAP_REACHED = "run_cap_reached"
    WORKFLOW_ENDED = "workflow_ended"


class EndCause(StrEnum):
    """Why a workflow did not succeed; the caps of `policy.limits` are causes too."""

    STEP_FAILED = "step_failed"
    STEP_CANCELLED = "step_cancelled"
    CANCEL_REQUESTED = "cancel_requested"


STOP_REASONS = frozenset(
    {SkipReason.WORKFLOW_HALTED, SkipReason.RUN_CANCELLED, SkipReason.RUN_CAP_REACHED, SkipReason.WORKFLOW_ENDED}
)


@dataclass(frozen=True, slots=True)
class StepFact:
    """State of a changed step; retries are over when it is in a final state.

    `fallback`: it replaces one that failed. `cause` is the reason of a skip.
    """

    node_id: str
    state: RunState
    error_class: str | None = None
    assignee_id: str | None = None
    fallback: bool = False
    cause: str | None = None

    @property
    def failed(self) -> bool:
        return self.state in FAILURES or self._turned_away

    @property
    def reassignable(self) -> bool:
        return (self.state in REASSIGNABLE and self.error_class != CONTRACT_VIOLATED) or self._turned_away

    @property
    def standing(self) -> Standing:
        """Node state of a final step; the policy decides the consequences of a failure."""
        if self.state is RunState.SUCCEEDED:
            return Standing.SUCCEEDED
        if self.failed:
            return Standing.FAILED
        return Standing.STOPPED if self.state in STOPPED else Standing.SKIPPED

    @property
    def _turned_away(self) -> bool:
        # Its turn had come and its target had no room: unlike other skips, this is work that was not done.
        return self.state is RunState.SKIPPED and self.cause == Reason.TARGET_BUSY


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about the workflow's run. `cap` names the limit that was exceeded, `inputs` are the run's."""

    failure: FailurePolicy = field(default_factory=FailurePolicy)
    inputs: Json = None
    cap: str | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class StepBirth:
    """`fallback_to` is who takes the place of whoever failed at the same node."""

    node_id: str
    fallback_to: str | None = None


@dataclass(frozen=True, slots=True)
class StepSkip:
    node_id: str
    reason: SkipReason


class Stop(StrEnum):
    """Treatment of open steps when a run is stopped."""

    ASK = "ask"  # what has not started is cancelled, what runs is asked to stop
    END = "end"  # nobody is waited for


@dataclass(frozen=True, slots=True)
class ResultsNeeded:
    """Conditions read the results of these nodes: the question is to be asked again with them."""

    node_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Advance:
    """`progress` has a letter for each node. `is_over`: no node can change any more."""

    progress: str
    births: tuple[StepBirth, ...] = ()
    skips: tuple[StepSkip, ...] = ()
    stop: Stop | None = None
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class RunEnd:
    """`result` maps each end node that succeeded to its result, also where the run as a whole did not."""

    state: RunState
    result: Mapping[str, Json]
    error: str | None = None
    cause: str | None = None
