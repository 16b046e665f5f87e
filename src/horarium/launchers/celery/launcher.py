"""Runs as tasks of Celery: a launch publishes one message, whose task id is the key of the delivery.

The broker has it then, and the run is queued: a report of its worker, the result backend or the deadline ends it.
Celery runs a task again that is published twice under one id, so this launcher promises nothing about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from horarium.audience import USUAL, Audience
from horarium.clock import Clock
from horarium.launchers.celery.broker import ANSWER_SECONDS, make_app, said
from horarium.launchers.celery.line import FIRST_REST_SECONDS, Line, Parcel, Revocation
from horarium.launchers.celery.message import BadArguments, message_of
from horarium.launchers.celery.results import Results
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import NotJson, clean_text
from horarium.launchers.preflight import Cleared, preflight
from horarium.life.outcome import Outcome, Refused, StillRunning, Unknown, Unreachable
from horarium.schedule import kinds
from horarium.schedule.storable import is_storable
from horarium.schedule.target import DEFAULT_CONNECTION, connection_in

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
    declares = kinds.CELERY
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

    def _new_lines(self) -> dict[str, Line]:
        """A thread begins when there is something to send."""
        return {name: Line(name, app, self._urls(name), self._rest) for name, app in self._apps.items()}

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
            raise ConnectionError(said(wrong, *self._urls(name))) from None

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
