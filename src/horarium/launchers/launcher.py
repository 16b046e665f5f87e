"""What a launcher is: it takes one run, gives it to its target, and answers with one of nine outcomes.

| outcome       | what is known                                                       |
|---------------|---------------------------------------------------------------------|
| Finished      | the work is done, here is its result                                |
| Accepted      | the target has it; its report, a poll or the deadline ends the run  |
| Refused       | the target will never take it as it is; trying again is pointless   |
| Busy          | the target has no room now; nothing was started                     |
| Unreachable   | nothing was started; a later try may reach it                       |
| Unknown       | it was sent and nobody can say whether it arrived                   |
| RunFailed     | the work ran and failed                                             |
| RunTimedOut   | the deadline came first                                             |
| RunCancelled  | somebody asked it to stop, and it was stopped                       |

A launcher never raises because of its target, keeps to the request's deadline, stops when
`request.cancelled` is set, and opens no transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from horarium.clock import Clock
from horarium.instant import SECOND, Instant
from horarium.schedule.definition import Action, Json

DEFAULT_CONCURRENCY = 10


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One delivery of a run. A redelivery repeats `key`; a retry after a known failure carries `key:n`."""

    run_id: str
    namespace: str
    key: str
    nominal: Instant
    due: Instant
    origin: str
    action: Action
    deadline: Instant
    instance_id: str
    schedule_id: str | None = None
    attempt: int = 0
    inputs: Json = None
    trigger_number: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memo: Mapping[str, Json] = field(default_factory=dict)
    traceparent: str | None = None
    cancelled: asyncio.Event | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a delivery needs a key")
        if self.attempt < 0:
            raise ValueError(f"attempt counts known failures and cannot be {self.attempt}")

    def seconds_left(self, clock: Clock) -> float:
        return (self.deadline - clock.now()) / SECOND


@dataclass(frozen=True, slots=True)
class Finished:
    result: Json = None
    cost: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """`queued`: it waits for a worker and has not started. `reference` is the target's own name for it."""

    reference: str | None = None
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    error: str


@dataclass(frozen=True, slots=True)
class Busy:
    """`retry_after_seconds` is the target's own wish; None = it named no time."""

    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    error: str


@dataclass(frozen=True, slots=True)
class Unknown:
    error: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """`error_class` is what the retry policy asks for: `timeout`, `provider_error` … or the target's own word."""

    error: str
    error_class: str | None = None
    result: Json = None


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
    Finished | Accepted | Refused | Busy | Unreachable | Unknown | RunFailed | RunTimedOut | RunCancelled
)


class Launcher(Protocol):
    """Subclass it to inherit the answers of a launcher that cannot be asked and holds nothing open."""

    kind: str
    honours_key: bool
    """Is a second delivery of the same key harmless by the target's own doing?"""
    concurrency: int
    """How many launches may be in flight unless the settings say otherwise."""
    can_poll: bool

    async def launch(self, request: LaunchRequest) -> Outcome: ...

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        return Unknown(f"a {self.kind} target cannot be asked how a run is doing")

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        """Ask for the end of a run. By default what this process has in flight stops; others are left to themselves."""
        if request.cancelled is not None:
            request.cancelled.set()

    async def start(self) -> None:
        return None

    async def close(self) -> None:
        return None


@runtime_checkable
class LaunchesMany(Protocol):
    """A launcher whose target takes batches; the outcomes stand in the order of the requests."""

    async def launch_many(self, requests: Sequence[LaunchRequest]) -> Sequence[Outcome]: ...
