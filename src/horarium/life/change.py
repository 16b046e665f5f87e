"""What an event can make of a run: it ends, waits for its target, is tried again, goes on, waits for a yes; or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from horarium.instant import Instant
from horarium.schedule.run import RunState


class Used(NamedTuple):
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
    used: Used | None = None
    attempt: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """The target has it: a report, a poll or the deadline will end it. `queued`: no worker has begun."""

    reference: str | None
    queued: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The target has it under this name. `held`: whoever holds the run stays with it; else who takes it next does."""

    reference: str
    held: bool = True


@dataclass(frozen=True, slots=True)
class Again:
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
    used: Used | None = None
    known: bool = False
    untouched: bool = False
    told: bool = True
    follows: bool = False
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """It runs. `begins`: this is the first word of it."""

    used: Used
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


class Why(StrEnum):
    """Why an event changes nothing."""

    SAID_BEFORE = "said_before"  # the run ended just so
    TOO_LATE = "too_late"  # the run has ended otherwise, or the attempt is over
    NOT_HELD = "not_held"  # whoever says it does not hold the run
    UNPROVEN = "unproven"  # whoever says it shows no right to
    NOT_SO = "not_so"  # what was seen without a lock is no longer so


@dataclass(frozen=True, slots=True)
class Nothing:
    why: Why


Change: TypeAlias = End | Wait | Begin | Again | Progress | Block | Admit | Nothing
