"""What happens next in a workflow run: which steps are born, tried again, skipped or stopped, and how it ends.

A step is decided when every node with an edge to it has ended for good. It is then born if all sources
of edges without a condition succeeded and, where edges have conditions, at least one of them holds: its
source succeeded and the condition is true. An empty condition, which is always true, therefore says "any
of these is enough". Everything else is skipped, and so are the nodes that need it.

A condition sees `{"result": …, "inputs": …}`: what the source answered and what the root was given. A
step gets `{"inputs": …, "results": {source: result}}`, with the sources that succeeded.

A failure is first retried, then given to the fallback assignee, and only then is it one. The root fails
if any step did, whatever came of the others; skipped branches are no failure. A request to cancel or a
cap stops what is left; where nothing is left, the root ends as its steps did.

`advance` is asked again whenever a step has changed, until the root ends. After its answer was written,
it has nothing to add to the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from horarium.instant import SECOND, Instant
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.failure import FailurePolicy, HaltRun
from horarium.policy.limits import RunLimits, Usage, exceeded
from horarium.policy.names import shown
from horarium.policy.retry import RetryPolicy
from horarium.schedule.definition import Json
from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, RunState
from horarium.schedule.workflow import Workflow

# Outcomes of work that was done badly; trying again may mend them. A launch has a retry budget of its own.
RETRYABLE = frozenset({RunState.FAILED, RunState.TIMED_OUT})
# Nobody else may take over a step that a person refused, or one that may have been done (`unknown`).
REASSIGNABLE = RETRYABLE | {RunState.LAUNCH_FAILED}
FAILURES = REASSIGNABLE | {RunState.UNKNOWN, RunState.REJECTED, RunState.EXPIRED}
STOPPED = frozenset({RunState.CANCELLED, RunState.TERMINATED})
# Nothing outside knows of these yet, so they can end without being asked.
NOT_STARTED = frozenset({RunState.HELD, RunState.AWAITING_APPROVAL, RunState.READY})


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


_STOP_REASONS = frozenset({SkipReason.WORKFLOW_HALTED, SkipReason.RUN_CANCELLED, SkipReason.RUN_CAP_REACHED})


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
        return self.state in STOPPED or (self.state is RunState.SKIPPED and self.cause in _STOP_REASONS)

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
    """`cancels` are runs that end as cancelled now; `stops` are asked to end and count until they have."""

    births: tuple[StepBirth, ...] = ()
    retries: tuple[StepRetry, ...] = ()
    waits: tuple[StepWait, ...] = ()
    skips: tuple[StepSkip, ...] = ()
    cancels: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    root: RootEnd | None = None


def advance(
    workflow: Workflow,
    steps: Mapping[str, StepFact],
    *,
    root_inputs: Json,
    root_started_at: Instant,
    policies: RunPolicies,
    usage: Usage,
    now: Instant,
    cancel_requested: bool = False,
) -> Advance:
    """`steps` holds the nodes that have a run, by their ids; `usage` is the sum over the run so far."""
    _check_facts(workflow, steps)
    elapsed = (now - root_started_at) // SECOND
    used = replace(usage, runtime_seconds=max(usage.runtime_seconds, elapsed))
    cap = exceeded(policies.limits, used)
    outcomes = _failure_outcomes(workflow, steps, policies, root_started_at, now)
    if cancel_requested:
        stop = SkipReason.RUN_CANCELLED
    elif cap is not None:
        stop = SkipReason.RUN_CAP_REACHED
    elif any(isinstance(outcome, HaltRun) for outcome in outcomes.values()):
        stop = SkipReason.WORKFLOW_HALTED
    else:
        plan = _Pass(workflow, steps, root_inputs, policies.approval, outcomes).run()
        return _ended(workflow, steps, plan, cap, cancel_requested) if _is_over(steps, outcomes, plan) else plan
    plan = _wind_down(workflow, steps, stop, at_once=cap is not None)
    going = any(fact.state not in FINAL and fact.run_id not in plan.cancels for fact in steps.values())
    return plan if going else _ended(workflow, steps, plan, cap, cancel_requested)
