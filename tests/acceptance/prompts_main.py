"""A process that sends prompts and kills itself at a point of it: between the claim, the send, the name and the answer.

The agent is a file: one line for each prompt that was sent to it, with its key and with the name of the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from acceptance.worker_main import Points, watch
from world import FakeClock

from horarium.core.lifecycle.outcome import Finished, Outcome, Unknown
from horarium.engine.dispatcher import Dispatcher
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.registry import Registry
from horarium.platform.database import open_database
from horarium.serve.preparers import preparers_with

STAGE = "prompt"


class FileAgent(Launcher):
    """`can_list`: whether it can be asked which tasks it has made of a message."""

    kind = "prompt"
    honours_key = False
    concurrency = 10
    can_poll = False

    def __init__(self, path: Path, can_list: bool, point: Callable[[str], None] = lambda name: None) -> None:
        self._path = path
        self._can_list = can_list
        self._point = point

    async def launch(self, request: LaunchRequest) -> Outcome:
        assert request.holder is not None
        task = request.reference or self._listed(request)
        if task is None and request.heard and request.once:
            return Unknown("nobody knows whether it arrived")
        if task is None:
            task = self._send(request)
        await request.holder.taken(task)
        self._point("after taken")
        return Finished({"text": "done", "task_id": task})

    def _listed(self, request: LaunchRequest) -> str | None:
        if not request.heard or not self._can_list:
            return None
        return next((task for key, task in sent(self._path) if key == request.key), None)

    def _send(self, request: LaunchRequest) -> str:
        self._point("before send")
        task = f"task-{len(sent(self._path)) + 1}"
        with self._path.open("a") as lines:
            lines.write(f"{request.key} {task}\n")
        self._point("after send")
        return task


def sent(path: Path) -> list[tuple[str, str]]:
    """Key and task of each prompt that has arrived."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [(key, task) for key, _, task in (line.partition(" ") for line in lines)]


def work(url: str, now: int, home: str, kill_at: str | int | None, can_list: bool) -> None:
    """Everything that is ready now; killed on the way, or not."""
    points = Points(Path(home) / "points", kill_at)
    database, clock = open_database(url), FakeClock(now)
    launcher = FileAgent(Path(home) / "agent", can_list, points)
    dispatcher = Dispatcher(database, clock, Registry([launcher]), "killed", preparers=preparers_with())
    points.stage = STAGE
    watch(database, points)
    while asyncio.run(dispatcher.step()):
        pass
