"""What ends a launch before anything is touched: a request to stop, a passed deadline, an input that is no JSON."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.core.lifecycle.outcome import Refused, RunCancelled, RunTimedOut
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import NotJson, encode
from horarium.platform.clock import Clock


@dataclass(frozen=True, slots=True)
class Cleared:
    """`inputs` is their JSON text."""

    inputs: bytes
    seconds_left: float


def preflight(request: LaunchRequest, clock: Clock) -> Cleared | Refused | RunTimedOut | RunCancelled:
    if request.cancelled is not None and request.cancelled.is_set():
        return RunCancelled("cancelled before it was launched")
    left = request.seconds_left(clock)
    if left <= 0:
        return RunTimedOut("the deadline passed before the launch")
    try:
        return Cleared(encode(request.inputs), left)
    except NotJson as wrong:
        return Refused(f"the input {wrong}")
