"""Two processes decide and hand over, one takes the reports, Celery executes: each fire is one execution, recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents.house import House, asking
from celery_workers.brokers import Broker, free_port, opened
from celery_workers.tasks import ORDER
from celery_workers.workers import Plan, Worker
from databases import migrated_postgres
from sqlalchemy import text

from horarium.instant import SECOND, to_rfc3339
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database

TOKEN = "hor_many"
_A_BUNDLE = 250
_STOP_SECONDS = 60
_STALLED_SECONDS = 60


@contextmanager
def program(words: list[str], folder: Path, settings: Mapping[str, str]) -> Iterator[None]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    path = os.pathsep.join(path for path in sys.path if path)
    with (folder / f"{words[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "horarium", *words],
            cwd=folder,
            env={**plain, **settings, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()


@contextmanager
def cluster(folder: Path, database: str, broker: Broker) -> Iterator[House]:
    """`horarium server`, twice `horarium worker`, and a Celery worker with two processes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "HORARIUM_DATABASE": database,
        "HORARIUM_DATA_DIR": str(folder / "data"),
        "HORARIUM_TOKEN": TOKEN,
        "HORARIUM_PUBLIC_URL": url,
        "HORARIUM_LOG_LEVEL": "warning",
        "HORARIUM_CELERY_CONNECTIONS": json.dumps({"default": {"broker": broker.url}}),
    }
    with ExitStack() as stack:
        stack.enter_context(program(["server", "--port", str(port)], folder, settings))
        for _ in range(2):
            stack.enter_context(program(["worker"], folder, settings))
        plan = Plan(broker, "many", spool=folder / "spool", concurrency=2)
        stack.enter_context(Worker(plan, folder / "celery.log"))
        house = stack.enter_context(asking(url, TOKEN))
        _wait_for_answer(house)
        yield house


def _wait_for_answer(house: House) -> None:
    end = time.monotonic() + _STOP_SECONDS
    while True:
        try:
            house.http.get("/health")
            return
        except httpx.ConnectError:
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.1)


def _put(house: House, count: int, start_at: str) -> None:
    """Schedules that are due once: together at that instant; whoever was written too late for it, a second later."""
    for first in range(0, count, _A_BUNDLE):
        schedules = [
            {
                "schedule_id": f"many-{number}",
                "cron_expressions": ["* * * * * *"],
                "start_at": start_at,
                "max_runs": 1,
                "action": {"kind": "celery", "task": "nothing", "args": [number]},
            }
            for number in range(first, min(first + _A_BUNDLE, count))
        ]
        house.ask("POST", "/api/apply", {"schedules": schedules})


def _states(database: Database) -> Counter[str]:
    rows = database.read(lambda connection: connection.execute(text(_STATES)).all())
    return Counter({row.state: row.count for row in rows})


_STATES = "SELECT state, count(*) AS count FROM runs GROUP BY state"
_ENDS = "SELECT reference, result FROM runs"


def _until_all_succeeded(database: Database, count: int) -> None:
    """However long it takes, as long as it goes on."""
    seen, moved = Counter[str](), time.monotonic()
    while (found := _states(database)) != {"succeeded": count}:
        if found != seen:
            seen, moved = found, time.monotonic()
        assert time.monotonic() - moved < _STALLED_SECONDS, f"nothing moves any more: {found}"
        time.sleep(0.2)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_each_fire_of_two_processes_is_executed_once_and_recorded(
    count: int, postgres_server: str, postgres_template: str, tmp_path: Path
) -> None:
    broker = Broker(tmp_path).start()
    try:
        with (
            migrated_postgres(postgres_server, postgres_template) as url,
            cluster(tmp_path, url, broker) as house,
        ):
            database = open_database(url)
            at = SystemClock().now() // SECOND * SECOND + (2 + count // 200) * SECOND
            _put(house, count, to_rfc3339(at))
            _until_all_succeeded(database, count)
            ends: list[Any] = database.read(lambda connection: list(connection.execute(text(_ENDS))))
            database.close()
        with opened(broker.books) as books:
            executed = books.lrange(ORDER, 0, -1)
    finally:
        broker.kill()
    assert Counter(executed) == Counter(key for key, _ in ends), "each once, and nothing else"
    assert sorted(int(result) for _, result in ends) == list(range(count))
