"""The Celery application of the tests: tasks that write down each execution in Redis, and do what their name says.

A worker is told in one variable what it stands on; without it the module is a list of names.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import cache
from typing import Any

import redis
from celery import Celery, Task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_ready

OPTIONS = "HORARIUM_TEST_CELERY"
"""JSON: `broker`, `result`, `books` (a Redis), `spool` (a folder: the worker reports), `token`, and `conf`."""
READY = "ready:"
EXECUTED = "executed:"
ORDER = "order"
RELEASED = "released:"

_told: dict[str, Any] = json.loads(os.environ.get(OPTIONS, "{}"))
_RESULT_SECONDS = 600

app = Celery("celery_workers", broker=_told.get("broker"), backend=_told.get("result"), set_as_current=False)
app.conf.update(
    {
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "result_expires": _RESULT_SECONDS,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        **_told.get("conf", {}),
    }
)
if "spool" in _told:
    from horarium.celery import report_to

    report_to(token=_told.get("token"), app=app, spool=_told["spool"])


@cache
def _books(_process: int) -> Any:
    """A connection of this process: one that a fork has copied belongs to two."""
    return redis.Redis.from_url(_told["books"], socket_timeout=None)  # a task may be held for longer than its bound


def books() -> Any:
    return _books(os.getpid())


@worker_ready.connect
def _say_ready(sender: Any, **_: Any) -> None:
    books().rpush(f"{READY}{sender.hostname}", os.getpid())


class Counted(Task):
    """Each execution is an entry under its id, and one in the order of all, made before the work begins."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        books().rpush(f"{EXECUTED}{self.request.id}", self.name)
        books().rpush(ORDER, self.request.id)
        return super().__call__(*args, **kwargs)


def _task(**options: Any) -> Any:
    return app.task(bind=True, base=Counted, shared=False, **options)  # by no other app of this process


@_task(name="add")
def add(self: Any, left: int, right: int = 0) -> int:
    return left + right


@_task(name="look")
def look(self: Any, **given: Any) -> dict[str, Any]:
    """What the message said beside its arguments."""
    asked = self.request
    return {
        "id": asked.id,
        "given": given,
        "header": (asked.headers or {}).get("horarium") or asked.get("horarium"),
        "timelimit": asked.timelimit,
        "expires": asked.expires,
        "priority": asked.delivery_info.get("priority"),
        "queue": asked.delivery_info.get("routing_key"),
    }


@_task(name="fail")
def fail(self: Any, text: str) -> None:
    raise ValueError(text)


@_task(name="strange")
def strange(self: Any) -> object:
    """A result that is no JSON; nobody but the reports carries it."""
    return {1, 2}


@_task(name="again", max_retries=3)
def again(self: Any, times: int) -> int:
    """Celery's own retries: the same id, so often."""
    tried: int = self.request.retries
    if tried < times:
        raise self.retry(countdown=0)
    return tried


def _hold(name: str) -> str:
    books().blpop([f"{RELEASED}{name}"])
    return name


@_task(name="hold")
def hold(self: Any, name: str) -> str:
    """Until the test lets it go; acknowledged when it begins, as Celery does."""
    return _hold(name)


@_task(name="hold_late", acks_late=True)
def hold_late(self: Any, name: str) -> str:
    """The same, acknowledged when it has ended."""
    return _hold(name)


@_task(name="obedient", soft_time_limit=1)
def obedient(self: Any) -> None:
    time.sleep(600)


@_task(name="stubborn", soft_time_limit=1)
def stubborn(self: Any) -> None:
    """It takes no notice of its soft limit."""
    while True:
        with suppress(SoftTimeLimitExceeded):
            time.sleep(600)


@_task(name="nothing", ignore_result=False)
def nothing(self: Any, number: int = 0) -> int:
    return number
