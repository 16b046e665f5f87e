"""What a result backend says of a task, as an outcome: for workers that do not report by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from celery import Celery
from celery.exceptions import SecurityError
from kombu.exceptions import SerializationError, SerializerNotInstalled

from horarium.clock import Clock
from horarium.launchers.payload import NotJson, clean_text, keep
from horarium.life.outcome import Accepted, Finished, Outcome, RunCancelled, RunFailed, RunTimedOut, StillRunning
from horarium.policy.retry import TIME_LIMITS

_EXPIRED: Final = "expired"
_AT_ONCE: Final = 4
# A backend that did not answer is left alone for so long: everybody who follows runs waits for its answers.
_REST_SECONDS: Final = 5.0
# It answered, and what it keeps for this one task cannot be read.
_UNREADABLE: Final = (SerializationError, SerializerNotInstalled, SecurityError, ValueError, TypeError, LookupError)


class Results:
    """The result backend of one connection, asked in threads of its own."""

    def __init__(self, name: str, app: Celery, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._rests_until = 0.0
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"celery-results-{name}")

    async def look_up(self, task_id: str) -> Outcome | StillRunning:
        """Raises whatever the library raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, task_id)

    def _look_up(self, task_id: str) -> Outcome | StillRunning:
        if self._clock.monotonic() < self._rests_until:
            return StillRunning()
        try:
            return outcome_of(self._app.backend.get_task_meta(task_id), task_id)
        except _UNREADABLE:
            raise
        except Exception:
            self._rests_until = self._clock.monotonic() + _REST_SECONDS
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def outcome_of(meta: Mapping[str, Any], task_id: str) -> Outcome | StillRunning:
    """Convert a stored result; a backend reports an unknown task as pending."""
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
    """Failure of a task that raised: the class of the exception is the class of the error."""
    said = clean_text(f"{name}: {text}" if text else name)
    return RunTimedOut(said) if name in TIME_LIMITS else RunFailed(said, clean_text(name, 100))


def kept_result(value: object) -> Any:
    """Convert a value to JSON; any other value is stored as its text."""
    try:
        return keep(value)
    except NotJson:
        return clean_text(repr(value))
