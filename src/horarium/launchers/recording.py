"""A launcher for tests and demonstrations: it records every delivery and returns outcomes from a script.

It de-duplicates by key as a perfect target would: a known key gets its first outcome again and takes no step of the
script.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from horarium.core.lifecycle.outcome import (
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunTimedOut,
    StillRunning,
    Unreachable,
)
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import CancelRequested, Cleared, WorkEnded, WorkTimedOut, preflight, run_within
from horarium.platform.clock import Clock

Step: TypeAlias = Outcome | Callable[[LaunchRequest], Outcome | Awaitable[Outcome]]

# Answers after which a target remembers nothing: the same key may come again and be taken.
_NotTaken: TypeAlias = Busy | Unreachable | Refused


class RecordingLauncher(Launcher):
    """`otherwise` answers when the script has come to its end; a step may be a function of the request."""

    honours_key = True
    concurrency = None
    can_poll = True

    def __init__(
        self,
        clock: Clock,
        *,
        kind: str = "recording",
        script: Iterable[Step] = (),
        otherwise: Step = Finished(),  # noqa: B008 - frozen, so one for all is safe
        polls: Iterable[Outcome | StillRunning] = (),
    ) -> None:
        self.kind = kind
        self.deliveries: list[LaunchRequest] = []
        self.cancels: list[tuple[LaunchRequest, str | None]] = []
        self._clock = clock
        self._script = deque(script)
        self._otherwise = otherwise
        self._polls = deque(polls)
        self._answers: dict[str, Outcome] = {}

    @property
    def keys(self) -> list[str]:
        """The keys that were taken, each once, in order."""
        return list(self._answers)

    async def launch(self, request: LaunchRequest) -> Outcome:
        self.deliveries.append(request)
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        if request.key in self._answers:
            return self._answers[request.key]
        end = await run_within(
            self._answer(request), seconds=cleared.seconds_left, cancelled=request.cancelled, grace_seconds=1.0
        )
        match end:
            case WorkEnded(outcome):
                if not isinstance(outcome, _NotTaken):
                    self._answers[request.key] = outcome
                return outcome
            case WorkTimedOut():
                return RunTimedOut("no response before the deadline")
            case CancelRequested():
                return RunCancelled("cancelled while waiting for the response")

    async def _answer(self, request: LaunchRequest) -> Outcome:
        step = self._script.popleft() if self._script else self._otherwise
        if isinstance(step, Outcome):
            return step
        answer = step(request)
        return await answer if inspect.isawaitable(answer) else answer

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        return self._polls.popleft() if self._polls else StillRunning()

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        self.cancels.append((request, reference))
        await super().cancel(request, reference)
