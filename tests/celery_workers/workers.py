"""Real Celery workers: the program itself in a process group of its own, which is ended politely or killed whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from celery_workers.brokers import PATIENCE, Broker, opened
from celery_workers.tasks import OPTIONS, READY


@dataclass(frozen=True)
class Plan:
    """What a worker stands on. `spool`: where it keeps its reports; without it nobody hears from it.

    `results`: it writes them to the broker's server, as a result backend.
    """

    broker: Broker
    name: str
    spool: Path | None = None
    results: bool = False
    pool: str = "prefork"
    concurrency: int = 1
    queues: tuple[str, ...] = ("celery",)
    conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> str:
        told: dict[str, Any] = {"broker": self.broker.url, "books": self.broker.books, "conf": dict(self.conf)}
        if self.results:
            told["result"] = self.broker.url
        if self.spool is not None:
            told["spool"] = str(self.spool)
        return json.dumps(told)

    @property
    def command(self) -> list[str]:
        words = ["-m", "celery", "-A", "celery_workers.tasks", "worker", "--hostname", f"{self.name}@tests"]
        words += ["--pool", self.pool, "--concurrency", str(self.concurrency), "--queues", ",".join(self.queues)]
        # What workers tell each other is no concern of these tests, and takes a second at the start.
        return [sys.executable, *words, "--without-gossip", "--without-mingle", "--loglevel", "WARNING"]

    @property
    def environment(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
        return {**plain, OPTIONS: self.options, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def wait_until_ready(self) -> None:
        with opened(self.broker.books) as books:
            assert books.blpop([f"{READY}{self.name}@tests"], PATIENCE), f"{self.name} did not start"


@dataclass
class Worker:
    """`with Worker(plan):` starts it and kills it at the end, if it still lives."""

    plan: Plan
    log: Path
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.plan.command,
                env=self.plan.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.plan.wait_until_ready()
        return self

    def stop(self) -> None:
        """What it has begun is done, and its reports are sent or kept."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)
            self._process = None

    def kill(self) -> None:
        """With its children: nobody has time for anything."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
