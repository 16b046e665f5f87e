"""One Redis and one reporting worker for all workers of a test session, and what a test asks of them."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery
from celery_workers.brokers import Broker, free_port, opened
from celery_workers.tasks import EXECUTED, RELEASED
from celery_workers.workers import Plan

_KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True)
class Bench:
    """A broker with its books, and how workers there are told something."""

    broker: Broker

    def executed(self, task_id: str) -> list[str]:
        """The names of the executions under this id, in order."""
        with opened(self.broker.books) as books:
            found: list[str] = books.lrange(f"{EXECUTED}{task_id}", 0, -1)
        return found

    def release(self, name: str) -> None:
        with opened(self.broker.books) as books:
            books.rpush(f"{RELEASED}{name}", "go")

    def waiting(self, queue: str = "celery") -> list[dict[str, Any]]:
        """The messages of one queue, of every priority, the next one first."""
        with opened(self.broker.messages_url) as messages:
            keys = [queue, *(f"{queue}\x06\x16{step}" for step in (3, 6, 9))]
            return [json.loads(each) for key in keys for each in reversed(messages.lrange(key, 0, -1))]

    @contextmanager
    def control(self) -> Iterator[Any]:
        """As an operator with `celery control`, and not one of us."""
        app = Celery(broker=self.broker.url, set_as_current=False)
        try:
            yield app.control
        finally:
            app.close()

    def consume(self, queue: str, worker: str) -> None:
        """The worker takes from this queue too, from now on."""
        with self.control() as control:
            told = control.add_consumer(queue, destination=[f"{worker}@tests"], reply=True, timeout=30)
        assert told, f"{worker} did not answer"


def shared(home: Path, owner: int, worker: str) -> Bench:
    """Whichever process of the session comes first starts both; they end with the session."""
    folder = home / "celery"
    with (home / "celery.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder / "told.json"
        if not told.exists():
            folder.mkdir(exist_ok=True)
            told.write_text(json.dumps({"port": _start(folder, owner, worker)}))
        return Bench(Broker(folder, port=json.loads(told.read_text())["port"]))


def _start(folder: Path, owner: int, worker: str) -> int:
    broker = Broker(folder, port=free_port())
    plan = Plan(broker, worker, spool=folder / "spool", concurrency=2)
    commands = [broker.command(), plan.command]
    with (folder / "log").open("ab") as log:
        subprocess.run(
            [sys.executable, str(_KEEPER), str(owner), json.dumps(commands)],
            env=plan.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=True,
        )
    broker.ready()
    plan.wait_until_ready()
    return broker.port
