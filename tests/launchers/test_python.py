"""Python calls: where they run, what their errors are called, and what stops them."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from launchers import far_ends
from launchers.far_ends import FixedClock, request_for, run_task

from horarium.audience import EVERYBODY
from horarium.core.lifecycle.outcome import (
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unreachable,
)
from horarium.launchers.python import PythonLauncher
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.job import Job


class _Own(Exception):
    error_class = "card_declined"


def _raises(error: BaseException) -> Callable[[], None]:
    def task() -> None:
        raise error

    return task


def _raises_async(error: BaseException) -> Callable[[], Any]:
    async def task() -> None:
        raise error

    return task


@pytest.mark.parametrize("wrap", [_raises, _raises_async], ids=["thread", "async"])
@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (ValueError("bad"), "provider_error"),
        (TimeoutError("late"), "timeout"),
        (_Own("no"), "card_declined"),
        (SystemExit(3), "provider_error"),
        (KeyboardInterrupt(), "provider_error"),
        (asyncio.CancelledError(), "provider_error"),
        (ValueError("\ud800\x00" + "x" * 100_000), "provider_error"),
    ],
    ids=["plain", "timeout", "own class", "exit", "interrupt", "cancelled itself", "hostile text"],
)
def test_an_exception_fails_the_run_and_nothing_else(wrap: Any, error: BaseException, error_class: str) -> None:
    outcome = run_task(wrap(error))
    assert isinstance(outcome, RunFailed)
    assert outcome.error_class == error_class
    assert len(outcome.error) <= 4_000
    outcome.error.encode()
    assert "\x00" not in outcome.error


def test_the_error_shows_the_frames_of_the_task_and_not_ours() -> None:
    outcome = run_task(_raises(ValueError("bad luck")))
    assert isinstance(outcome, RunFailed)
    assert "bad luck" in outcome.error
    assert "in task" in outcome.error
    assert "calls.py" not in outcome.error


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), {1: 2}, b"x", 2**70])
def test_a_result_that_is_no_json_is_a_broken_contract(value: Any) -> None:
    outcome = run_task(lambda: value)
    assert isinstance(outcome, RunFailed)
    assert outcome.error_class == "contract_violated"
    assert outcome.error.startswith("the result of the task ")


def test_a_plain_function_that_returns_a_coroutine_is_told_so() -> None:
    outcome = run_task(lambda: far_ends.echo_async(1))
    assert isinstance(outcome, RunFailed)
    assert "async def" in outcome.error


def test_a_result_may_be_a_tuple() -> None:
    assert run_task(lambda: (1, (2,))) == Finished([1, [2]])


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_a_task_may_say_what_it_cost(cpu: bool) -> None:
    assert run_task(far_ends.costly, cpu=cpu) == Finished("done", cost=1.5, tokens=42)


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_a_task_may_say_what_it_used_in_its_context(cpu: bool) -> None:
    assert run_task(far_ends.spends, [False], cpu=cpu) == Finished("done", cost=0.5, tokens=7, tool_calls=2)
    failed = run_task(far_ends.spends, [True], cpu=cpu)
    assert isinstance(failed, RunFailed)
    assert (failed.cost, failed.tokens, failed.tool_calls) == (0.5, 7, 2)


@pytest.mark.parametrize(
    ("name", "value"), [("cost", "much"), ("cost", -1.0), ("cost", float("nan")), ("tokens", 1.5), ("tool_calls", -1)]
)
def test_what_no_run_can_have_used_is_a_broken_contract(name: str, value: Any) -> None:
    def spend(context: Job) -> None:
        setattr(context, name, value)

    outcome = run_task(spend)
    assert isinstance(outcome, RunFailed)
    assert (outcome.error_class, name in outcome.error) == ("contract_violated", True)


def test_a_coroutine_that_goes_on_after_a_cancel_can_see_that_it_was_told() -> None:
    seen: list[bool] = []

    async def stubborn(context: Job) -> str:
        seen.append(context.cancelled())
        try:
            await asyncio.sleep(2 * far_ends.FOR_EVER)
        except asyncio.CancelledError:
            seen.append(context.cancelled())
        return "half of it"

    async def run() -> Outcome:
        tasks, cancelled = TaskRegistry(), asyncio.Event()
        tasks.add(stubborn, name="stubborn")
        asyncio.get_running_loop().call_later(0.05, cancelled.set)
        request = request_for("python", {"callable": "stubborn"}, cancelled=cancelled)
        return await PythonLauncher(tasks, FixedClock()).launch(request)

    assert asyncio.run(run()) == RunCancelled("the task stubborn was cancelled")
    assert seen == [False, True]


def test_a_computation_runs_in_another_process_with_its_context() -> None:
    assert run_task(os.getpid, cpu=True) != Finished(os.getpid())
    outcome = run_task(far_ends.who, cpu=True)
    assert isinstance(outcome, Finished)
    assert outcome.result == {"run_id": "run-1", "key": far_ends.KEY, "cancelled": False}


def test_a_process_that_dies_fails_its_run_only() -> None:
    assert run_task(far_ends.die, cpu=True) == RunFailed("the process ended with exit code 7", "provider_error")


def test_a_function_that_no_other_process_can_import_is_told_so() -> None:
    outcome = run_task(lambda: 1, cpu=True)
    assert isinstance(outcome, RunFailed)
    assert outcome.error_class == "contract_violated"


def test_a_process_is_killed_at_the_deadline() -> None:
    from multiprocessing import active_children

    assert isinstance(run_task(far_ends.sleep_long, cpu=True, seconds=0.5), RunTimedOut)
    limit = time.monotonic() + 60
    while active_children() and time.monotonic() < limit:
        time.sleep(0.01)
    assert active_children() == []


def test_closing_kills_the_processes() -> None:
    async def run() -> Outcome:
        launcher = PythonLauncher(far_ends.tasks(), FixedClock())
        launch = asyncio.ensure_future(
            launcher.launch(request_for("python", {"callable": "cpu_sleep_long"}, seconds=50))
        )
        await asyncio.sleep(0.3)
        await launcher.close()
        return await launch

    assert isinstance(asyncio.run(run()), RunFailed)  # else it would reach its deadline


def test_abandoned_threads_are_counted_and_bounded_and_forgotten_when_they_end() -> None:
    release = threading.Event()

    async def run() -> list[Any]:
        tasks = TaskRegistry()
        tasks.add(lambda: release.wait(far_ends.FOR_EVER), name="deaf")
        launcher = PythonLauncher(tasks, FixedClock(), concurrency=1, grace_seconds=0.1)
        first = await launcher.launch(request_for("python", {"callable": "deaf"}, seconds=0.1))
        found: list[Any] = [first, launcher.abandoned]
        found.append(await launcher.launch(request_for("python", {"callable": "deaf"}, seconds=0.1)))
        release.set()
        while launcher.abandoned:
            await asyncio.sleep(0.001)
        found.append(await launcher.launch(request_for("python", {"callable": "deaf"})))
        return found

    first, abandoned, second, later = asyncio.run(run())
    assert isinstance(first, RunTimedOut)
    assert "continues to run" in first.error
    assert abandoned == 1
    assert second == Busy()
    assert later == Finished(True)


def test_calls_take_a_thread_again_but_never_that_of_a_call_that_goes_on() -> None:
    release = threading.Event()
    tasks = TaskRegistry()
    tasks.add(lambda: release.wait(30), name="stuck")
    tasks.add(threading.get_ident, name="who")

    async def run() -> tuple[Outcome, list[Any]]:
        launcher = PythonLauncher(tasks, FixedClock(), grace_seconds=0.01)
        stuck = await launcher.launch(request_for("python", {"callable": "stuck"}, seconds=0.05))
        found: list[Any] = []
        for _ in range(20):
            found.append(await launcher.launch(request_for("python", {"callable": "who"})))
            while not launcher._threads.idle:  # a moment after its answer was heard
                await asyncio.sleep(0.001)
        release.set()
        await launcher.close()
        return stuck, [each.result for each in found]

    stuck, idents = asyncio.run(run())
    assert isinstance(stuck, RunTimedOut)
    assert len(set(idents)) == 1


def test_a_thread_sees_the_context_variables_of_its_launch_and_leaves_none_behind() -> None:
    place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")

    def look() -> str:
        seen = place.get()
        place.set("changed")
        return seen

    tasks = TaskRegistry()
    tasks.add(look, name="look")

    async def run() -> list[Outcome]:
        launcher = PythonLauncher(tasks, FixedClock())
        found = []
        for name in ("here", "there"):
            place.set(name)
            found.append(await launcher.launch(request_for("python", {"callable": "look"})))
        return found

    assert asyncio.run(run()) == [Finished("here"), Finished("there")]


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_a_system_without_threads_has_started_nothing(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    assert run_task(list, cpu=cpu) == Unreachable("no thread is available for the call: can't start new thread")


def test_a_thread_that_listens_is_not_abandoned() -> None:
    async def run() -> tuple[Outcome, int]:
        launcher = PythonLauncher(far_ends.tasks(), FixedClock())
        cancelled = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, cancelled.set)
        request = request_for("python", {"callable": "sleep_listening"}, cancelled=cancelled)
        outcome = await launcher.launch(request)
        await asyncio.sleep(0.05)
        return outcome, launcher.abandoned

    assert asyncio.run(run()) == (RunCancelled("the task sleep_listening was cancelled"), 0)


def test_a_coroutine_that_is_cancelled_can_tidy_up() -> None:
    tidied: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            tidied.append("yes")

    assert isinstance(run_task(careful, seconds=0.1), RunTimedOut)
    assert tidied == ["yes"]


def test_the_task_of_a_workflow_action_is_its_workflow_type() -> None:
    async def run() -> Outcome:
        launcher = PythonLauncher(far_ends.tasks(), FixedClock())
        return await launcher.launch(request_for("workflow", {"workflow_type": "echo"}, inputs=[1]))

    assert asyncio.run(run()) == Finished({"inputs": 1})


def test_an_unknown_task_is_refused_with_those_that_are_known() -> None:
    async def run() -> Outcome:
        return await PythonLauncher(far_ends.tasks(), FixedClock()).launch(request_for("python", {"callable": "nope"}))

    outcome = asyncio.run(run())
    assert isinstance(outcome, Refused)
    assert "'nope' is not registered; registered: big, big_async" in outcome.error


def test_one_namespace_s_stuck_threads_are_no_other_s_trouble() -> None:
    tasks, stuck = TaskRegistry(EVERYBODY), threading.Event()
    tasks.add(lambda: stuck.wait(30), name="stuck")
    tasks.add(lambda: 7, name="quick")

    async def run() -> list[Outcome]:
        launcher = PythonLauncher(tasks, FixedClock(), concurrency=2, grace_seconds=0.05)
        try:
            first = replace(request_for("python", {"task": "stuck"}), namespace="theirs")
            stopping = asyncio.Event()
            launch = asyncio.create_task(launcher.launch(replace(first, cancelled=stopping)))
            await asyncio.sleep(0.05)
            stopping.set()
            await launch
            again = await launcher.launch(replace(first, cancelled=None))
            ours = await launcher.launch(request_for("python", {"task": "quick"}))
            return [again, ours]
        finally:
            stuck.set()
            await launcher.close()

    assert asyncio.run(run()) == [Busy(), Finished(7)]
