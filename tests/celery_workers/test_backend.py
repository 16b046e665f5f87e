"""Where no worker reports, the result backend is asked; and what Redis has, it gives out by priority."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.house import House, living, name, until
from celery_workers.brokers import opened
from celery_workers.house import start
from celery_workers.running import Bench
from celery_workers.workers import Plan, Worker


@pytest.fixture
def quiet(bench: Bench, sqlite_template: Path, tmp_path: Path) -> Iterator[House]:
    path = shutil.copy(sqlite_template, tmp_path / "horarium.db")
    connections = {"default": {"broker": bench.broker.url, "result": bench.broker.url}}
    with living(tmp_path, f"sqlite:///{path}", janitor_seconds=0.2, celery_connections=connections) as running:
        yield running


def test_results_are_looked_up_and_the_highest_priority_comes_first(quiet: House, bench: Bench, tmp_path: Path) -> None:
    queue = name("backend")
    priorities = [0, 9, 3, 6]
    runs = {priority: start(quiet, "add", [priority], queue=queue, priority=priority) for priority in priorities}
    failed = start(quiet, "fail", ["no money"], queue=queue)
    until(lambda: len(bench.waiting(queue)) == 5)
    plan = Plan(bench.broker, queue, results=True, pool="solo", queues=(queue,), conf={"worker_prefetch_multiplier": 1})
    with Worker(plan, tmp_path / "worker.log"):
        ends = {priority: quiet.ended(run_id) for priority, run_id in runs.items()}
        wrong = quiet.ended(failed)
    assert {priority: run["result"] for priority, run in ends.items()} == {each: each for each in priorities}
    assert (wrong["state"], wrong["error_class"]) == ("failed", "ValueError")
    assert "no money" in wrong["error"]
    with opened(bench.broker.books) as books:
        order = books.lrange("order", 0, -1)
    ours = {run["key"]: priority for priority, run in ends.items()}
    assert [ours[each] for each in order if each in ours] == [9, 6, 3, 0]
