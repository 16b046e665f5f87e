"""What the tests with real workers stand on: one Redis and one worker a session, one service a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.house import House, living
from celery_workers.running import Bench, shared

WORKER = "shared"


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """With a worker that reports; its queues are for everybody, so a test has names of its own."""
    base = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    home, owner = (base.parent, os.getppid()) if is_worker else (base, os.getpid())
    return shared(home, owner, WORKER)


@pytest.fixture(scope="module")
def house(bench: Bench, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    path = shutil.copy(sqlite_template, folder / "horarium.db")
    connections = {"default": {"broker": bench.broker.url}}
    with living(folder, f"sqlite:///{path}", janitor_seconds=0.2, celery_connections=connections) as running:
        yield running
