"""Worker, broker and service are killed while tasks are under way: none is lost, and none is run more than it must."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from agents.house import House, living_at, name, until
from celery_workers.brokers import Broker, opened
from celery_workers.house import start, task_id
from celery_workers.running import Bench
from celery_workers.workers import Plan, Worker

from horarium.serve.process import listen

_A_DAY = 86_400


class Place:
    """A broker, a database and an address of a test's own: whoever stands on them may die and come back."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.folder = folder
        self.broker = Broker(folder, durable=True)
        self.bench = Bench(self.broker)
        self.address: socket.socket = listen("127.0.0.1", 0)
        self._database = shutil.copy(template, folder / "horarium.db")

    def service(self) -> AbstractContextManager[House]:
        """On the same database and the same address each time; while there is none, callers are let wait."""
        connections = {"default": {"broker": self.broker.url}}
        return living_at(
            self.address.dup(),
            self.folder,
            f"sqlite:///{self._database}",
            janitor_seconds=0.2,
            celery_connections=connections,
        )

    def worker(self, pool: str = "prefork", **conf: object) -> Worker:
        plan = Plan(self.broker, name("own"), spool=self.folder / "spool", pool=pool, concurrency=2, conf=conf)
        return Worker(plan, self.folder / "worker.log")

    def unacknowledged(self) -> int:
        with opened(self.broker.messages_url) as messages:
            return int(messages.zcard("unacked_index"))

    def let_a_day_pass(self) -> None:
        """For what was taken from the broker and not acknowledged: no visibility timeout is as long."""
        with opened(self.broker.messages_url) as messages:
            for each, taken in messages.zrange("unacked_index", 0, -1, withscores=True):
                messages.zadd("unacked_index", {each: taken - _A_DAY})


@pytest.fixture
def place(tmp_path: Path, sqlite_template: Path) -> Iterator[Place]:
    found = Place(tmp_path, sqlite_template)
    found.broker.start()
    try:
        yield found
    finally:
        found.broker.kill()
        found.address.close()


def test_a_worker_that_is_killed_loses_what_was_acknowledged_early_until_its_deadline(place: Place) -> None:
    """What is acknowledged late is executed again under the same id, and its run ends once."""
    retry = {"max_retries": 1, "backoff_ms": 1, "retry_on": ["timeout"]}
    with place.service() as house:
        with place.worker() as worker:
            early = start(house, "hold", ["early"], timeout_seconds=5, retry_policy=retry)
            late = start(house, "hold_late", ["late"])
            for run_id in (early, late):
                house.until(run_id, "running")
            worker.kill()
        place.let_a_day_pass()
        for each in ("early", "late") * 2:  # the dead may have been handed the first
            place.bench.release(each)
        often = {"unacked_restore_interval": 1, "unacked_restore_throttle": 1}
        with place.worker(broker_transport_options=often):
            ends = {run_id: house.ended(run_id) for run_id in (early, late)}
        assert [run["state"] for run in ends.values()] == ["succeeded", "succeeded"]
        assert place.bench.executed(task_id(house, early)) == ["hold"]
        assert place.bench.executed(task_id(house, early, 1)) == ["hold"]
        assert place.bench.executed(ends[late]["key"]) == ["hold_late", "hold_late"]
        assert [ends[run_id]["attempt"] for run_id in (early, late)] == [1, 0]


def test_runs_that_are_due_while_the_broker_is_away_go_out_when_it_is_back(place: Place) -> None:
    with place.service() as house:
        before = start(house, "add", [1])
        until(lambda: len(place.bench.waiting()) == 1)
        place.broker.kill()
        during = [start(house, "add", [number]) for number in (2, 3)]
        for run_id in during:
            until(lambda run_id=run_id: house.run(run_id)["error"], "an attempt to reach the broker")
        place.broker.start()
        ids = [task_id(house, run_id) for run_id in (before, *during)]
        until(lambda: len(place.bench.waiting()) == 3)
        assert sorted(each["headers"]["id"] for each in place.bench.waiting()) == sorted(ids)
        with place.worker("solo"):
            assert [house.ended(run_id)["result"] for run_id in (before, *during)] == [1, 2, 3]
        assert [place.bench.executed(each) for each in ids] == [["add"]] * 3


def test_what_a_worker_finished_while_the_service_was_away_is_told_by_the_next_one(place: Place) -> None:
    with place.worker() as worker:
        with place.service() as house:
            run_id = start(house, "hold_late", ["mine"])
            key = house.until(run_id, "running")["key"]
        place.bench.release("mine")
        until(lambda: place.unacknowledged() == 0, "the task is over")
        worker.kill()
    with place.service() as house, place.worker("solo"):
        run = house.ended(run_id)
        assert (run["state"], run["result"]) == ("succeeded", "mine")
    assert place.bench.executed(key) == ["hold_late"]
