"""Runs that wait for a worker: the pull launcher hands nothing out, it names the queue where a run can be claimed.

The run row is the message. Launching it twice puts the same row on the same queue, so the key is honoured.
"""

from __future__ import annotations

from collections.abc import Sequence

from horarium.clock import Clock
from horarium.launchers.launcher import Accepted, Launcher, LaunchRequest, Outcome, Refused
from horarium.launchers.preflight import Cleared, preflight

DEFAULT_QUEUE = "default"
MAX_QUEUE_NAME = 255


class PullLauncher(Launcher):
    kind = "pull"
    honours_key = True
    concurrency = 1_000
    can_poll = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def launch(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        queue = request.action.queue or request.action.target.get("task_queue") or DEFAULT_QUEUE
        if not isinstance(queue, str) or len(queue) > MAX_QUEUE_NAME:
            return Refused(f"task_queue must be a text of at most {MAX_QUEUE_NAME} characters")
        return Accepted(reference=queue, queued=True)

    async def launch_many(self, requests: Sequence[LaunchRequest]) -> Sequence[Outcome]:
        return [await self.launch(request) for request in requests]
