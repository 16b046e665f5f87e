"""What belongs to a run is copied to it; everybody else's output is as it was."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from horarium.platform import job
from horarium.platform.run_log import RunLog


@pytest.fixture(autouse=True)
def watching(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    job.begin_capture()
    yield
    job.end_capture()


def of_run(work: Callable[[], object], log: RunLog) -> None:
    def inside() -> None:
        job.keep_output(log)
        work()

    contextvars.copy_context().run(inside)


def told(log: RunLog) -> list[tuple[str, str]]:
    return [(line.stream.value, line.text) for line in log.peek(last=True).lines]


def log_of() -> RunLog:
    return RunLog(lambda: 0)


def test_what_is_printed_is_kept_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of()

    def work() -> None:
        print("out", 1)
        print("err", file=sys.stderr)
        sys.stdout.writelines(["a", "b\n"])

    of_run(work, log)
    print("somebody else")
    assert told(log) == [("stdout", "out 1"), ("stderr", "err"), ("stdout", "ab")]
    assert capsys.readouterr() == ("out 1\nab\nsomebody else\n", "err\n")


def test_what_is_logged_is_kept_once_and_goes_where_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    log, logger = log_of(), logging.getLogger("shop.orders")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        of_run(lambda: logger.warning("%d left", 3), log)
        of_run(lambda: logger.debug("not asked for"), log)
        logger.warning("somebody else")
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
    assert told(log) == [("log", "WARNING shop.orders: 3 left")]
    assert capsys.readouterr().err == "3 left\nsomebody else\n"


def test_a_record_that_cannot_be_formatted_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    log = log_of()
    of_run(lambda: logging.getLogger("shop").error("%d left", "many"), log)
    assert "cannot be formatted" in told(log)[0][1]


def test_threads_and_coroutines_do_not_mix() -> None:
    logs = {name: log_of() for name in "abcd"}

    def in_thread(name: str) -> None:
        job.keep_output(logs[name])
        for _ in range(50):
            print(name)

    async def in_loop(name: str) -> None:
        job.keep_output(logs[name])
        for _ in range(50):
            print(name)
            await asyncio.sleep(0)

    async def loops() -> None:
        await asyncio.gather(in_loop("c"), in_loop("d"))

    threads = [threading.Thread(target=in_thread, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    asyncio.run(loops())
    for thread in threads:
        thread.join()
    assert {name: {text for _, text in told(log)} for name, log in logs.items()} == {name: {name} for name in "abcd"}


def test_a_stream_that_was_put_in_place_later_is_watched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def write(self, text: str) -> int:
            return len(text)

    log = log_of()
    monkeypatch.setattr(sys, "stdout", Deaf())
    of_run(lambda: print("heard"), log)
    assert told(log) == [("stdout", "heard")]


def test_in_the_end_all_is_as_it_was() -> None:
    job.begin_capture()
    job.end_capture()
    watched = sys.stdout
    assert watched.isatty() is False
    job.end_capture()
    try:
        assert sys.stdout is not watched
        assert logging.Logger.callHandlers.__module__ == "logging"
    finally:
        job.begin_capture()
