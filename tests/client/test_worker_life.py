"""How a worker starts and stops, and what it does while the server is away."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from client.any_worker import QUEUE, SHORT, AnyWorker, outcome, until, waits
from client.drivers import QUICK

from horarium.client.aio_worker import AsyncWorker
from horarium.client.client import Client
from horarium.client.worker import Worker
from horarium.errors import InvalidDefinition
from horarium.platform.client import errors
from horarium.platform.client.call import Call
from horarium.testing import TestService


async def coroutine(day: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"day": day}


def function(day: str) -> dict[str, str]:
    return {"day": day}


@contextmanager
def running(worker: Worker) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield thread
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_a_running_worker_takes_what_comes_and_stops_when_told(horarium: TestService) -> None:
    with AnyWorker("sync", horarium).client() as client:
        worker = Worker(client, [QUEUE], **SHORT)

        @worker.handler("sweep")
        def sweep() -> str:
            return "swept"

        with running(worker):
            waits(horarium)
            until(lambda: outcome(horarium)[0] == "succeeded")
            waits(horarium)
            until(lambda: outcome(horarium)[0] == "succeeded")
        assert sweep() == "swept"


def test_what_is_in_hand_is_finished_before_the_worker_stops(horarium: TestService) -> None:
    begun = threading.Event()

    def handler() -> str:
        begun.set()
        time.sleep(0.1)
        return "done"

    waits(horarium)
    with (
        AnyWorker("sync", horarium).client() as client,
        running(Worker(client, [QUEUE], {"sweep": handler}, **SHORT)),
    ):
        assert begun.wait(60)
    assert outcome(horarium)[:2] == ("succeeded", "done")


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_what_does_not_end_in_time_is_left_to_its_lease(horarium: TestService, kind: str) -> None:
    begun, forever = threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        forever.wait(30)

    async def coroutine() -> None:
        begun.set()
        await asyncio.sleep(30)

    waits(horarium)
    handler = function if kind == "function" else coroutine
    options = {**SHORT, "grace_seconds": 0.05}
    with (
        AnyWorker("sync", horarium).client() as client,
        running(Worker(client, [QUEUE], {"sweep": handler}, **options)),
    ):
        assert begun.wait(60)
    assert outcome(horarium)[0] == "running"
    forever.set()


def test_a_worker_that_was_stopped_before_it_ran_returns_at_once(horarium: TestService) -> None:
    waits(horarium)
    with AnyWorker("sync", horarium).client() as client:
        worker = Worker(client, [QUEUE], {"sweep": lambda: None}, **SHORT)
        worker.stop()
        worker.run()
        assert outcome(horarium)[0] == "queued"
        assert worker.drain() == 1  # it may be used again


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT], ids=lambda which: which.name)
def test_a_signal_stops_a_worker_of_the_main_thread(horarium: TestService, which: signal.Signals) -> None:
    def handler() -> str:
        os.kill(os.getpid(), which)
        return "done"

    waits(horarium)
    # A process that a shell starts in the background inherits an ignored SIGINT.
    usual = signal.default_int_handler if which is signal.SIGINT else signal.SIG_DFL
    before = signal.signal(which, usual)
    try:
        with AnyWorker("sync", horarium).client() as client:
            Worker(client, [QUEUE], {"sweep": handler}, **SHORT).run()
        assert outcome(horarium)[:2] == ("succeeded", "done")
        assert signal.getsignal(which) == usual
    finally:
        signal.signal(which, before)


def test_a_type_has_one_handler() -> None:
    with Client() as client:
        worker = Worker(client, [QUEUE])
        worker.handler("sweep")(function)
        worker.handler("sweep")(function)
        with pytest.raises(ValueError, match="sweep"):
            worker.handler("sweep")(coroutine)


@pytest.mark.parametrize(
    "wrong", [{"queues": []}, {"queues": "brooms"}, {"queues": [QUEUE], "concurrency": 0}], ids=str
)
def test_a_worker_that_could_not_work_is_not_made(wrong: dict[str, Any]) -> None:
    with Client() as client, pytest.raises(InvalidDefinition):
        Worker(client, **wrong)


# ── a server that is away ────────────────────────────────────────────────────────────────────────────


class Scripted:
    """Stands for a client: raises what the script says for a path, and otherwise answers for one run."""

    def __init__(self, **script: list[Exception]) -> None:
        self._script = script
        self.sent: list[Call[Any]] = []

    async def send(self, call: Call[Any]) -> Any:
        self.sent.append(call)
        verb = call.template.rpartition("/")[2]
        if self._script.get(verb):
            raise self._script[verb].pop(0)
        first = sum(each.template == call.template for each in self.sent) == 1
        runs = [{"run_id": "r", "workflow_type": "sweep", "lease_epoch": 1, "lease_seconds": 0.03}]
        return call.parse({"runs": runs if first else [], "outcome": "recorded"})

    def verbs(self) -> list[str]:
        return [call.template.rpartition("/")[2] for call in self.sent]


def away() -> errors.ServerUnavailable:
    return errors.ServerUnavailable("away", status=503)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.client.aio_worker._PATIENCE", QUICK)


@pytest.mark.usefixtures("no_waiting")
def test_a_report_is_told_until_it_is_heard() -> None:
    server = Scripted(report=[away(), errors.RateLimited("slowly")])
    assert asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: 7}).drain()) == 1
    reports = [call for call in server.sent if call.template.endswith("/report")]
    assert [call.body["result"] for call in reports] == [7, 7, 7]


@pytest.mark.usefixtures("no_waiting")
def test_a_report_that_is_refused_is_told_once() -> None:
    server = Scripted(report=[errors.LeaseLost("gone")])
    asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: 7}).drain())
    assert server.verbs().count("report") == 1


@pytest.mark.usefixtures("no_waiting")
def test_a_claim_that_fails_for_the_moment_is_made_again() -> None:
    async def work() -> Scripted:
        server = Scripted(claim=[away(), errors.ServerError("oops")])
        worker = AsyncWorker(server, [QUEUE], poll_seconds=0.01)
        worker.handler("nothing")(function)
        running = asyncio.create_task(worker.run())
        while server.verbs().count("claim") < 4:
            await asyncio.sleep(0.001)
        worker.stop()
        await running
        return server

    assert asyncio.run(work()).verbs()[:3] == ["claim"] * 3


def test_a_worker_that_may_not_work_ends() -> None:
    server = Scripted(claim=[errors.Forbidden("the role viewer may not work")])
    with pytest.raises(errors.Forbidden):
        asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": lambda: None}).run())


def test_a_short_lease_beats_faster_and_a_lost_beat_is_no_end() -> None:
    server = Scripted(heartbeat=[away(), away()])

    async def handler() -> None:
        while server.verbs().count("heartbeat") < 3:
            await asyncio.sleep(0.001)

    asyncio.run(AsyncWorker(server, [QUEUE], {"sweep": handler}).drain())
    assert server.verbs()[-2:] == ["report", "claim"]
