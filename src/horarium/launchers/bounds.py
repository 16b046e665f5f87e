"""Bounds of a launch: it lasts until its work ends, its deadline passes or its cancellation is requested.

A cancelled run, a passed deadline and an input that is not JSON end a launch before anything is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from horarium.core.lifecycle.outcome import Refused, RunCancelled, RunTimedOut
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.payload import NotJson, encode
from horarium.platform.clock import Clock

T = TypeVar("T")

# Beyond this a sleep is as good as for ever, and some event loops overflow.
LONGEST_WAIT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class WorkEnded(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """`abandoned`: the work did not stop within the grace and goes on unseen."""

    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class CancelRequested:
    abandoned: bool = False


End: TypeAlias = WorkEnded[T] | DeadlinePassed | CancelRequested


async def run_within(
    work: Coroutine[Any, Any, T] | asyncio.Future[T],
    *,
    seconds: float,
    cancelled: asyncio.Event | None,
    grace_seconds: float,
    stop: Callable[[], object] | None = None,
) -> End[T]:
    """Run work until it ends, its time is over or the run is cancelled.

    Cancelled work has `grace_seconds` to clean up. A future represents work elsewhere, which `stop` asks to stop
    instead of a cancellation. Work that ended at the same moment as the deadline has ended: its result takes
    precedence.
    """
    task = asyncio.ensure_future(work)
    stop = stop or task.cancel
    try:
        # Much of what is called ends at its first step, and needs neither a timer nor anybody who watches.
        await asyncio.sleep(0)
        if not task.done():
            await _first_of(task, min(max(seconds, 0), LONGEST_WAIT_SECONDS), cancelled)
    except asyncio.CancelledError:
        # The launch itself is cancelled, at shutdown: its work goes down with it.
        await _stopped(task, stop, grace_seconds)
        raise
    if task.done():
        return WorkEnded(task.result())
    asked = cancelled is not None and cancelled.is_set()
    abandoned = not await _stopped(task, stop, grace_seconds)
    return CancelRequested(abandoned) if asked else DeadlinePassed(abandoned)


async def _first_of(task: asyncio.Future[Any], seconds: float, cancelled: asyncio.Event | None) -> None:
    """`asyncio.wait` would do, at three times the price."""
    loop = asyncio.get_running_loop()
    first = loop.create_future()
    asked = loop.create_task(cancelled.wait()) if cancelled is not None else None

    def end(_ended: object = None) -> None:
        if not first.done():
            first.set_result(None)

    timer = loop.call_later(seconds, end)
    task.add_done_callback(end)
    if asked is not None:
        asked.add_done_callback(end)
    try:
        await first
    finally:
        timer.cancel()
        task.remove_done_callback(end)
        if asked is not None:
            asked.cancel()


async def _stopped(task: asyncio.Future[Any], stop: Callable[[], object], grace_seconds: float) -> bool:
    # It may fail long after anybody listens; asking for its error keeps the loop quiet.
    task.add_done_callback(_forget_error)
    stop()
    done, _ = await asyncio.wait({task}, timeout=grace_seconds)
    return bool(done)


def _forget_error(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


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
