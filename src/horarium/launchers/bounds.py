"""How long a launch may last: until its work ends, its deadline comes or somebody asks it to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

# Beyond this a sleep is as good as for ever, and some event loops overflow.
LONGEST_WAIT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """`abandoned`: the work did not stop within the grace and goes on unseen."""

    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class CancelAsked:
    abandoned: bool = False


End: TypeAlias = Ended[T] | DeadlineReached | CancelAsked


async def run_within(
    work: Coroutine[Any, Any, T], *, seconds: float, cancelled: asyncio.Event | None, grace_seconds: float
) -> End[T]:
    """What comes first. Work that is cut short is cancelled and has `grace_seconds` to tidy up.

    Work that ended at the same moment as the deadline has ended: its answer is worth more than our clock.
    """
    task = asyncio.ensure_future(work)
    # An abandoned task may fail long after anybody listens; asking for its error keeps the loop quiet.
    task.add_done_callback(_forget_error)
    asked = asyncio.ensure_future(cancelled.wait()) if cancelled is not None else None
    waiting: set[asyncio.Future[Any]] = {task} if asked is None else {task, asked}
    try:
        done, _ = await asyncio.wait(
            waiting, timeout=min(max(seconds, 0), LONGEST_WAIT_SECONDS), return_when=asyncio.FIRST_COMPLETED
        )
    except asyncio.CancelledError:
        # The launch itself is cancelled, at shutdown: its work goes down with it.
        await _stopped(task, grace_seconds)
        raise
    finally:
        if asked is not None:
            asked.cancel()
    if task in done:
        return Ended(task.result())
    abandoned = not await _stopped(task, grace_seconds)
    return CancelAsked(abandoned) if asked in done else DeadlineReached(abandoned)


async def _stopped(task: asyncio.Future[Any], grace_seconds: float) -> bool:
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=grace_seconds)
    return bool(done)


def _forget_error(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
