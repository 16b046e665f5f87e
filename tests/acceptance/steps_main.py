"""A whole service in a process of its own that kills itself at a point of the walk through a workflow.

Each statement, each commit and each launch is a point, as in `worker_main`. The target is a file: one line for each
delivery, with its key.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from acceptance.worker_main import Points, watch

from horarium.core.lifecycle.outcome import Finished
from horarium.launchers.launcher import LaunchRequest
from horarium.testing import service

STAGE = "walk"


def answering(file: Path, point: Callable[[str], None] = lambda name: None) -> Callable[[LaunchRequest], Finished]:
    def answer(request: LaunchRequest) -> Finished:
        node = str(request.action.target["url"]).rpartition("/")[2]
        point(f"before {node}")
        with file.open("a") as lines:
            lines.write(f"{request.run_id} {request.key}\n")
        point(f"after {node}")
        return Finished({"node": node}, tokens=1)

    return answer


def work(url: str, now: int, home: str, kill_at: str | int | None) -> None:
    """Everything that can be done now; killed on the way, or not."""
    points = Points(Path(home) / "points", kill_at)
    with service(at=now, answer=answering(Path(home) / "deliveries", points), database=url) as horarium:
        points.stage = STAGE
        watch(horarium.resources.database, points)
        horarium.settle()
