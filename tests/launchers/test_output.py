"""What tasks print and log, and what commands write, goes to the log of their run."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from launchers import far_ends
from launchers.far_ends import run_task
from launchers.test_command import run_command, shell

from horarium.core.lifecycle.outcome import Finished, Outcome, RunCancelled, RunFailed
from horarium.launchers.command import CommandSpec
from horarium.launchers.python import PythonLauncher
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.job import Job
from horarium.platform.run_log import RunLog


def log_of(most: int = 65_536) -> RunLog:
    return RunLog(lambda: 0, most)


def told(log: RunLog) -> list[tuple[str, str]]:
    return [(line.stream.value, line.text) for line in log.peek(last=True).lines]


EVERYTHING = [
    ("stdout", "to whom"),
    ("stderr", "oh"),
    ("log", "WARNING shop: 3 left"),
    ("log", "said aloud"),
    ("stdout", "no end"),
]


@pytest.mark.parametrize(
    ("function", "cpu"),
    [(far_ends.talks, False), (far_ends.talks_async, False), (far_ends.talks, True)],
    ids=["thread", "async", "process"],
)
def test_what_a_task_says_is_kept(function: Any, cpu: bool) -> None:
    log = log_of()
    assert run_task(function, cpu=cpu, log=log) == Finished("done")
    assert told(log) == EVERYTHING


def test_what_a_process_said_is_kept_when_it_is_killed() -> None:
    log, tasks = log_of(), TaskRegistry()
    tasks.add(far_ends.talks_and_hangs, name="it", cpu=True)

    async def run() -> Outcome:
        cancelled = asyncio.Event()
        request = far_ends.request_for("python", {"callable": "it"}, seconds=600, cancelled=cancelled, log=log)
        launch = asyncio.ensure_future(PythonLauncher(tasks, far_ends.FixedClock()).launch(request))
        while not log.touched and not launch.done():
            await asyncio.sleep(0.01)
        cancelled.set()
        return await launch

    assert asyncio.run(run()) == RunCancelled("the task it was cancelled")
    assert told(log) == [("stdout", "still here")]


def test_a_thread_of_a_task_may_speak_through_its_context() -> None:
    def starts(context: Job) -> None:
        thread = threading.Thread(target=lambda: context.log("from below"))
        thread.start()
        thread.join()

    log = log_of()
    run_task(starts, log=log)
    assert told(log) == [("log", "from below")]


def test_a_task_without_a_log_may_speak_too() -> None:
    assert run_task(far_ends.talks) == Finished("done")


def test_what_a_command_writes_is_kept() -> None:
    log = log_of()
    outcome = run_command(shell("echo out; echo err >&2; printf 'caf\\303\\251 \\377 \\0'; exit 3"), log=log)
    assert isinstance(outcome, RunFailed)
    assert sorted(told(log)) == [("stderr", "err"), ("stdout", "café \ufffd \ufffd"), ("stdout", "out")]


def test_a_command_that_never_stops_writing_keeps_its_last_words() -> None:
    log = log_of(4_096)
    spec = CommandSpec(("/bin/sh", "-c", "yes | head -c 20000000; echo; echo last words"))
    assert isinstance(run_command(spec, log=log), Finished)
    batch = log.peek(last=True)
    assert batch.lines[-1].text == "last words"
    assert batch.dropped + len(batch.lines) == 10_000_002
