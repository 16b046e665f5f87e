"""Events of a run after its decision, and the changes that they make.

An event is an answer of the launcher, a report of the target, the passing of time or a stop. `react` turns it into a
change. An event names its fence, since the run may have moved on before the event is handled: `epoch` is the lease,
`attempt` the delivery that it is about.

A change ends the run, waits for its target, retries it, continues it, awaits approval, or does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from horarium.core.document.json_values import Json
from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import Outcome
from horarium.instant import Instant

# ── Events ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LaunchAnswered:
    """The launcher, or the target that it polled; the holder of the lease speaks."""

    outcome: Outcome
    epoch: int


@dataclass(frozen=True, slots=True)
class TargetAccepted:
    """The target has it, under a name of its own; the holder of the lease stays with it."""

    reference: str
    epoch: int


class ReportedState(StrEnum):
    """State that a target may report for its run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Reported:
    """`cost` is in millionths of a credit; usage is that of this attempt alone.

    `epoch` and `attempt` are None where the reporter does not say. `by` is who reports. `proven`: the attempt is
    shown by the token that its target was handed, and with it `gates_passed`, what had been agreed to by then.
    """

    state: ReportedState
    result: Json = None
    error: str | None = None
    error_class: str | None = None
    cost: int | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    gate: str | None = None
    epoch: int | None = None
    attempt: int | None = None
    by: str | None = None
    proven: bool = False
    gates_passed: int | None = None


@dataclass(frozen=True, slots=True)
class LostLease:
    """Its holder was not heard of in time: nobody knows what became of it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """Its holder stops in good order, in the midst of it. `begun`: the target may have heard of it."""

    epoch: int
    begun: bool


@dataclass(frozen=True, slots=True)
class UnstorableAnswer:
    """Its holder has an answer that cannot be written down."""

    error: str
    epoch: int


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The time of this attempt, or of the whole run, is over."""


@dataclass(frozen=True, slots=True)
class WaitedTooLong:
    """Its target has no place for it, and has had none for as long as that is worth waiting for."""


@dataclass(frozen=True, slots=True)
class CancelledUnstarted:
    """Somebody wants it no more, and nobody outside has seen it."""

    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CancelledOutside:
    """Somebody wants it no more, and the target that has it was told."""

    error: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """It ends now, whoever has it."""

    error: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalExpired:
    """Nobody said yes in time, or a newer occurrence asks in its place (`cause` superseded)."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """As many as were needed said yes, to these inputs; None = as they are. `modified`: not to those first shown."""

    approval_id: bytes
    inputs: Json = None
    modified: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalRefused:
    """Somebody said no."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowEnded:
    """All its nodes are over, or nothing more is to be waited for; its state is a final one."""

    state: RunState
    result: Json = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None


Event: TypeAlias = (
    LaunchAnswered
    | TargetAccepted
    | Reported
    | LostLease
    | GivenBack
    | UnstorableAnswer
    | DeadlinePassed
    | WaitedTooLong
    | CancelledUnstarted
    | CancelledOutside
    | Terminated
    | ApprovalExpired
    | ApprovalGiven
    | ApprovalRefused
    | WorkflowEnded
)


# ── Changes ───────────────────────────────────────────────────────────────────────────────────────────


class UsedResources(NamedTuple):
    """Usage of a run in all its attempts; `cost` in millionths of a credit."""

    cost: int
    tokens: int
    tool_calls: int


@dataclass(frozen=True, slots=True)
class End:
    """The run is over. `attempt` counts its known failures, this one included; None = as they were, as is `used`."""

    state: RunState
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cause: str | None = None
    used: UsedResources | None = None
    attempt: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitForTarget:
    """The target has it: a report, a poll or the deadline will end it. `queued`: no worker has begun."""

    reference: str | None
    queued: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The target has it under this name. `held`: whoever holds the run stays with it; else who takes it next does."""

    reference: str
    held: bool = True


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Back to ready. `attempt` counts known failures, `launches` the deliveries tried within the attempt.

    `known`: the attempt is over, so that whoever still speaks for it is not heard. `untouched`: nothing
    has begun in it, so that its time has not begun either. `told`: the run's events mention it. `follows`: whoever
    takes it next looks for what was begun, under the name and within the time that it has. `timed`: its time runs on.
    """

    ready_at: Instant
    attempt: int
    launches: int
    busy_since: Instant | None = None
    error: str | None = None
    error_class: str | None = None
    used: UsedResources | None = None
    known: bool = False
    untouched: bool = False
    told: bool = True
    follows: bool = False
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """It runs. `begins`: this is the first word of it."""

    used: UsedResources
    begins: bool


@dataclass(frozen=True, slots=True)
class Block:
    """It came to a gate, and waits for a yes without lease and without deadline.

    `question` is what the target wants to know, `reference` its name for what waits there; None = as it was.
    """

    gate: str
    question: str | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """It may start, or go on, with these inputs; None = with those it has. `modified`: they were changed on the way."""

    approval_id: bytes
    ready_at: Instant
    inputs: Any = None
    modified: bool = False


class NothingCause(StrEnum):
    """Why an event changes nothing."""

    SAID_BEFORE = "said_before"  # the run ended just so
    TOO_LATE = "too_late"  # the run has ended otherwise, or the attempt is over
    NOT_HELD = "not_held"  # whoever says it does not hold the run
    UNPROVEN = "unproven"  # whoever says it shows no right to
    NOT_SO = "not_so"  # what was seen without a lock is no longer so


@dataclass(frozen=True, slots=True)
class Nothing:
    why: NothingCause


Change: TypeAlias = End | WaitForTarget | Begin | RetryLater | Progress | Block | Admit | Nothing
