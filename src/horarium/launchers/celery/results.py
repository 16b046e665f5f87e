"""What a result backend says of a task, as an outcome: for workers that do not report by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from horarium.launchers.payload import NotJson, clean_text, keep
from horarium.life.outcome import Accepted, Finished, Outcome, RunCancelled, RunFailed, RunTimedOut, StillRunning
from horarium.policy.retry import TIME_LIMITS

_EXPIRED: Final = "expired"


def outcome_of(meta: Mapping[str, Any], task_id: str) -> Outcome | StillRunning:
    """What a backend has not heard of, it calls pending."""
    state, result = meta.get("status"), meta.get("result")
    match state:
        case "SUCCESS":
            return Finished(kept_result(result))
        case "FAILURE":
            return failure(type(result).__name__, str(result))
        case "REVOKED":
            text = clean_text(str(result or "revoked"))
            if text.strip("'\" ") == _EXPIRED:
                return RunTimedOut("the task expired before a worker began it")
            return RunCancelled(f"the task was revoked: {text}")
        case "STARTED" | "RETRY":
            return Accepted(task_id)
        case _:
            return StillRunning()


def failure(name: str, text: str) -> RunFailed | RunTimedOut:
    """Of a task that raised: the class of the exception is the class of the error."""
    said = clean_text(f"{name}: {text}" if text else name)
    return RunTimedOut(said) if name in TIME_LIMITS else RunFailed(said, clean_text(name, 100))


def kept_result(value: object) -> Any:
    """What is no JSON is kept as its text."""
    try:
        return keep(value)
    except NotJson:
        return clean_text(repr(value))
