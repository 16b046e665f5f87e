"""What can happen to a run after it was decided: its launcher answers, a target reports, time passes, it is stopped.

Each is a value that `react` turns into a change. An event names the fence under which it speaks, since the
world may have moved on before it is heard: `epoch` is the lease, `attempt` the delivery that it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from horarium.life.outcome import Outcome
from horarium.schedule.json_limits import Json
from horarium.schedule.run import RunState


@dataclass(frozen=True, slots=True)
class Answered:
    """The launcher, or the target that it polled; the holder of the lease speaks."""

    outcome: Outcome
    epoch: int


@dataclass(frozen=True, slots=True)
class Taken:
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
class LeaseLost:
    """Its holder was not heard of in time: nobody knows what became of it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """Its holder stops in good order, in the midst of it. `begun`: the target may have heard of it."""

    epoch: int
    begun: bool


@dataclass(frozen=True, slots=True)
class Unstorable:
    """Its holder has an answer that cannot be written down."""

    error: str
    epoch: int


@dataclass(frozen=True, slots=True)
class DeadlineReached:
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
    Answered
    | Taken
    | Reported
    | LeaseLost
    | GivenBack
    | Unstorable
    | DeadlineReached
    | WaitedTooLong
    | CancelledUnstarted
    | CancelledOutside
    | Terminated
    | ApprovalExpired
    | ApprovalGiven
    | ApprovalRefused
    | WorkflowEnded
)
