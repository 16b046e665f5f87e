"""What handlers print and log is kept with their runs, and read back by either client."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from client.any_worker import AnyWorker, waits
from client.drivers import Driver

from horarium.client import aio_worker
from horarium.client.job import Job, LeasedRun
from horarium.platform.run_log import Batch
from horarium.testing import TestService
from horarium.testing.service import TOKEN


@pytest.fixture(params=["sync", "async"])
def hands(request: pytest.FixtureRequest, horarium: TestService) -> AnyWorker:
    return AnyWorker(request.param, horarium)


def said(horarium: TestService, driver: Driver, *, after: int = 0) -> list[tuple[str, str]]:
    run_id = horarium.runs()[-1].run_id
    lines = driver.run(lambda c: c.follow_run_logs(run_id, after=after, poll_seconds=0.01))
    assert lines == driver.run(lambda c: c.iter_run_logs(run_id, after=after))
    return [(line.stream.value, line.text) for line in lines]


def talks(context: Job) -> None:
    print("to whom")
    logging.getLogger("shop").warning("three left")
    context.log("said aloud")


async def talks_async(context: Job) -> None:
    talks(context)


@pytest.mark.parametrize("handler", [talks, talks_async], ids=["function", "coroutine"])
def test_what_a_handler_says_is_kept_with_its_run(
    hands: AnyWorker, horarium: TestService, make_driver: Callable[..., Driver], handler: Any
) -> None:
    driver = make_driver(app=horarium.parts.api, token=TOKEN)
    waits(horarium)
    hands.drain({"sweep": handler})
    everything = [("stdout", "to whom"), ("log", "WARNING shop: three left"), ("log", "said aloud")]
    assert said(horarium, driver) == everything
    assert said(horarium, driver, after=2) == everything[2:]


def test_runs_that_are_worked_on_at_once_do_not_mix(hands: AnyWorker, horarium: TestService) -> None:
    both = threading.Barrier(2)

    def handler(name: str) -> None:
        for _ in range(5):
            both.wait(60)
            print(name)

    for name in ("a", "b"):
        waits(horarium, [name])
    hands.drain({"sweep": handler})
    with hands.client() as client:
        for run in client.list_runs():
            assert [line.text for line in client.get_run_logs(run.run_id)] == client.get_run(run.run_id).inputs * 5


def test_lines_that_are_on_their_way_when_the_handler_returns_are_kept_once(
    hands: AnyWorker, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, lines_call = threading.Event(), LeasedRun.lines_call

    def lines(held: LeasedRun, batch: Batch) -> Any:
        under_way.set()
        return lines_call(held, batch)

    async def handler(context: Job) -> None:
        print("once")
        while not under_way.is_set():
            await asyncio.sleep(0)

    monkeypatch.setattr(aio_worker, "_LINES_SECONDS", 0.001)
    monkeypatch.setattr(LeasedRun, "lines_call", lines)
    waits(horarium)
    hands.drain({"sweep": handler})
    with hands.client() as client:
        assert [line.text for line in client.get_run_logs(horarium.runs()[-1].run_id)] == ["once"]


def test_a_worker_may_keep_nothing(hands: AnyWorker, horarium: TestService) -> None:
    waits(horarium)
    hands.drain({"sweep": talks}, log_bytes=0)
    with hands.client() as client:
        assert client.get_run_logs(horarium.runs()[-1].run_id).items == ()


def test_a_run_that_ended_meanwhile_harms_no_worker(hands: AnyWorker, horarium: TestService) -> None:
    def handler(context: Job) -> None:
        with hands.client() as client:
            client.terminate_run(context.run_id)
        print("too late")

    waits(horarium)
    assert hands.drain({"sweep": handler}) == 1
    assert horarium.runs()[-1].state.value == "terminated"
