"""Runs as tasks of Celery: a launch publishes one message, whose task ID is the delivery key.

The run is queued once the broker has the message: a report of its worker, the result backend or the deadline ends
it. The result backend is for workers that do not report by themselves. Celery runs a task again that is published
twice under one ID, so this launcher promises nothing about redelivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from celery import Celery
from celery.exceptions import SecurityError
from kombu.exceptions import SerializationError, SerializerNotInstalled

from horarium.audience import USUAL, Audience
from horarium.core.document import reader
from horarium.core.document.definition import DEFAULT_CONNECTION, connection_in
from horarium.core.document.json_values import is_storable
from horarium.core.lifecycle.outcome import (
    Accepted,
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
from horarium.core.policy.approval import TIME_LIMITS
from horarium.launchers.celery.broker import ANSWER_SECONDS, BadArguments, error_text, make_app, message_of
from horarium.launchers.celery.publisher import FIRST_REST_SECONDS, Parcel, Publisher, Revocation
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import Cleared, NotJson, clean_text, keep, preflight
from horarium.platform.clock import Clock

# ── result backend ────────────────────────────────────────────────────────────────────────────────────


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
            return Finished(json_result(result))
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


def json_result(value: object) -> Any:
    """Convert a value to JSON; any other value is stored as its text."""
    try:
        return keep(value)
    except NotJson:
        return clean_text(repr(value))


# How often somebody looks for parcels that are not wanted any more, or wait for too long.
_LOOK_SECONDS: Final = 0.25
# Sockets give up much sooner; this is for brokers whose libraries know no bound.
_PATIENCE_SECONDS: Final = 45.0
_CLOSE_SECONDS: Final = 2.0
# For word of a broker that its workers were told.
_TELL_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Broker:
    """A connection of the settings."""

    broker: str = field(repr=False)
    result: str | None = field(default=None, repr=False)
    audience: Audience = USUAL


class CeleryLauncher(Launcher):
    declares = reader.CELERY
    kind = declares.name
    honours_key = False
    concurrency = None
    places_at_target = 500

    def __init__(
        self,
        brokers: Mapping[str, Broker],
        clock: Clock,
        *,
        rest_seconds: float = FIRST_REST_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Set the pause after the first failed attempt to reach a broker, and the time limit of its replies."""
        self._clock = clock
        self._brokers = dict(brokers)
        self._apps = {name: make_app(each.broker, each.result, answer_seconds) for name, each in brokers.items()}
        self._rest = rest_seconds
        self._lines = self._new_lines()
        self.can_poll = any(each.result is not None for each in brokers.values())
        self._results: dict[str, Results] = {}
        self._parcels: dict[Parcel, asyncio.Event | None] = {}
        self._watcher: asyncio.Task[None] | None = None

    def connections_for(self, namespace: str) -> frozenset[str]:
        return frozenset(name for name, each in self._brokers.items() if namespace in each.audience)

    def _new_lines(self) -> dict[str, Publisher]:
        """A thread begins when there is something to send."""
        return {name: Publisher(name, app, self._urls(name), self._rest) for name, app in self._apps.items()}

    async def start(self) -> None:
        """Again after a close, too: whoever lets the engine make one pass at a time does that."""
        self._lines = self._new_lines()

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        for each in self._results.values():
            each.close()
        self._results = {}
        await asyncio.gather(*(asyncio.to_thread(line.close, _CLOSE_SECONDS) for line in self._lines.values()))

    # ── handing over ─────────────────────────────────────────────────────────────────────────────

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        name = self._connection(request)
        if isinstance(name, Refused):
            return name
        task, queue = request.action.target.get("task"), request.action.queue
        if not isinstance(task, str) or not task.strip() or not is_storable([task, queue]):
            return Refused(f"invalid task name {clean_text(repr(task), 200)}")
        try:
            message = message_of(request, queue, cleared.seconds_left)
        except (BadArguments, NotJson) as wrong:
            return Refused(f"the arguments cannot be sent: {clean_text(str(wrong), 500)}")
        parcel = Parcel(message, asyncio.get_running_loop().create_future(), self._clock.monotonic())
        self._parcels[parcel] = request.cancelled
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(), name="celery-parcels")
        self._lines[name].put(parcel)
        try:
            return await parcel.answer
        finally:
            self._parcels.pop(parcel, None)

    def _connection(self, request: LaunchRequest) -> str | Refused:
        """One that is not for this namespace is not there: the words are the same."""
        name = request.action.connection or DEFAULT_CONNECTION
        own = self.connections_for(request.namespace)
        if name in own:
            return name
        known = clean_text(", ".join(sorted(own)), 500) or "none"
        return Refused(f"the connection {clean_text(repr(name), 200)} is not configured; configured: {known}")

    async def _watch(self) -> None:
        """One for all parcels: most have their answer before anybody looks."""
        while self._parcels:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            for parcel, cancelled in list(self._parcels.items()):
                if not parcel.answer.done():
                    self._look_at(parcel, cancelled, now)

    def _look_at(self, parcel: Parcel, cancelled: asyncio.Event | None, now: float) -> None:
        late = now - parcel.put_at > _PATIENCE_SECONDS
        if cancelled is not None and cancelled.is_set() and parcel.withdraw():
            # Not `RunCancelled`: a process that stops gives it back by that, and whoever wants its end finds it ready.
            parcel.answer.set_result(Unreachable("cancelled before it was published; nothing was sent"))
        elif late and parcel.withdraw():
            parcel.answer.set_result(Unreachable("the broker connection is busy; nothing was sent"))
        elif late:
            parcel.answer.set_result(Unknown("the broker did not confirm the message"))

    # ── what became of it ────────────────────────────────────────────────────────────────────────

    async def poll(self, request: LaunchRequest, reference: str | None) -> Outcome | StillRunning:
        if not self.can_poll:
            return await super().poll(request, reference)
        name = self._connection(request)
        if isinstance(name, Refused) or reference is None or self._brokers[name].result is None:
            return StillRunning()
        if name not in self._results:
            self._results[name] = Results(name, self._apps[name], self._clock)
        try:
            return await self._results[name].look_up(reference)
        except Exception as wrong:  # the library repeats the URL, which whoever logs it must not see
            raise ConnectionError(error_text(wrong, *self._urls(name))) from None

    def _urls(self, name: str) -> tuple[str, str | None]:
        return self._brokers[name].broker, self._brokers[name].result

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        await super().cancel(request, reference)
        name = self._connection(request)
        if isinstance(name, str) and reference is not None:
            await self._revoke(name, [reference], terminate=False)

    async def end_tasks(self, target: str, references: list[str]) -> bool:
        """Revoke tasks of runs that have ended although a worker may still execute them. False = try again later."""
        name = connection_in(target)
        return name not in self._lines or await self._revoke(name, references, terminate=True)

    async def _revoke(self, name: str, references: list[str], *, terminate: bool) -> bool:
        order = Revocation(references, terminate, asyncio.get_running_loop().create_future())
        self._lines[name].put(order)
        # Whoever follows runs asks for others as well; what a broker has not heard by then stays in the line.
        await asyncio.wait([order.answer], timeout=_TELL_SECONDS)
        return order.answer.done() and order.answer.result()
