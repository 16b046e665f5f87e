"""A task that is not begun when its run is over: for brokers that deliver a message twice.

It is no lock. Of two deliveries at the same time both begin, and so does a second one that comes before the end of the
first has been reported, which takes some tenths of a second.
"""

from __future__ import annotations

from typing import Any

from celery import Task
from celery.exceptions import Ignore

from horarium.celery.install import LISTENER


class SkipEnded(Task):  # type: ignore[misc]  # Celery has no types
    """As the base of a task: `@app.task(base=SkipEnded)`. Each start costs a request to the service.

    What has ended, was cancelled, or is being tried again under another id is not executed. Where the service cannot be
    asked, and for tasks that are no runs, it begins as usual.
    """

    abstract = True

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        if LISTENER.is_over(self.request):
            raise Ignore("the run of this task has ended")
        super().before_start(task_id, args, kwargs)
