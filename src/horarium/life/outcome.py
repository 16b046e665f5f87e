"""What a launcher may answer: ten outcomes, each of which says what is known of one delivery.

| outcome       | what is known                                                       |
|---------------|---------------------------------------------------------------------|
| Finished      | the work is done, here is its result                                |
| Accepted      | the target has it; its report, a poll or the deadline ends the run  |
| Asked         | the target has begun, and goes on when somebody answers its question |
| Refused       | the target will never take it as it is; trying again is pointless   |
| Busy          | the target has no room now; nothing was started                     |
| Unreachable   | nothing was started; a later try may reach it                       |
| Unknown       | it was sent and nobody can say whether it arrived                   |
| RunFailed     | the work ran and failed                                             |
| RunTimedOut   | the deadline came first                                             |
| RunCancelled  | somebody asked it to stop, and it was stopped                       |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from horarium.schedule.json_limits import Json


@dataclass(frozen=True, slots=True)
class Finished:
    result: Json = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """`queued`: it waits for a worker and has not started. `reference` is the target's own name for it."""

    reference: str | None = None
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """`gate` is what kind of question it is, `reference` the target's own name for what waits there."""

    gate: str
    question: str
    reference: str


@dataclass(frozen=True, slots=True)
class Refused:
    error: str


@dataclass(frozen=True, slots=True)
class Busy:
    """`retry_after_seconds` is the target's own wish; None = it named no time.

    `sent`: it was the target that said so, after a byte had left. `error_class`: what a target that stays
    busy is a failure of, for the retry policy; None = the run is skipped then, which is no failure.
    """

    retry_after_seconds: float | None = None
    sent: bool = False
    error_class: str | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """`sent`: a byte had left, and the target said that it had not begun."""

    error: str
    sent: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    error: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """`error_class` is what the retry policy asks for: `timeout`, `provider_error` … or the target's own word."""

    error: str
    error_class: str | None = None
    result: Json = None
    cost: float | None = None
    tokens: int | None = None
    tool_calls: int | None = None


@dataclass(frozen=True, slots=True)
class RunTimedOut:
    error: str


@dataclass(frozen=True, slots=True)
class RunCancelled:
    error: str


@dataclass(frozen=True, slots=True)
class StillRunning:
    """A poll's answer that is no outcome: ask again later."""


Outcome: TypeAlias = (
    Finished | Accepted | Asked | Refused | Busy | Unreachable | Unknown | RunFailed | RunTimedOut | RunCancelled
)
