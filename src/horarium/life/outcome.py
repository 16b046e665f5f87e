"""Outcomes that a launcher returns: the public path of `horarium.core.lifecycle.outcome`."""

from horarium.core.lifecycle.outcome import (
    Accepted,
    Asked,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    StillRunning,
    Unknown,
    Unreachable,
)

__all__ = [
    "Accepted",
    "Asked",
    "Busy",
    "Finished",
    "Outcome",
    "Refused",
    "RunCancelled",
    "RunFailed",
    "RunTimedOut",
    "StillRunning",
    "Unknown",
    "Unreachable",
]
