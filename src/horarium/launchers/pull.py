"""Runs that wait for a worker: the pull launcher sends nothing, it names the queue where a run can be claimed.

The run row is the message. Launching it twice puts the same row on the same queue, so the key is honoured; and since
nothing outside is touched, a launch is a change of that row and may happen in the transaction that claims the row.
"""

from __future__ import annotations

from horarium.core.document import reader
from horarium.core.document.definition import DEFAULT_QUEUE
from horarium.core.lifecycle.outcome import Accepted, Outcome
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.payload import Cleared, preflight
from horarium.platform.clock import Clock


class PullLauncher(Launcher):
    declares = reader.PULL
    kind = declares.name
    honours_key = True
    concurrency = None
    can_poll = False
    launches_at_once = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def answer_at_once(self, request: LaunchRequest) -> Outcome:
        cleared = preflight(request, self._clock)
        if not isinstance(cleared, Cleared):
            return cleared
        return Accepted(reference=request.action.queue or DEFAULT_QUEUE, queued=True)

    async def launch(self, request: LaunchRequest) -> Outcome:
        return self.answer_at_once(request)
