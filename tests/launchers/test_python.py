"""Python calls: how inputs become arguments, what errors are called, and what stops."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from launchers import far_ends
from launchers.far_ends import FixedClock, request_for

from horarium.launchers.python import PythonLauncher
from horarium.launchers.tasks import RunContext, Task, TaskRegistry, context_of
from horarium.life.outcome import Busy, Finished, Outcome, Refused, RunCancelled, RunFailed, RunTimedOut, Unreachable
from horarium.schedule.definition import ActionKind


def run_task(function: Callable[..., Any], inputs: Any = None, *, cpu: bool = False, **changes: Any) -> Outcome:
    tasks = TaskRegistry()
    tasks.add(function, name="it", cpu=cpu)

    async def run() -> Outcome:
        launcher = PythonLauncher(tasks, FixedClock(), grace_seconds=0.2)
        return await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "it"}, inputs=inputs, **changes))

    return asyncio.run(run())


def none() -> list[Any]:
    return []


def one(value: Any) -> list[Any]:
    return [value]


def two(a: Any, b: Any = "b") -> list[Any]:
    return [a, b]


def many(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


def context_first(context: RunContext, a: Any = None) -> list[Any]:
    return [context.run_id, a]


def context_last(a: Any = None, *, context: RunContext) -> list[Any]:
    return [context.run_id, a]


def context_is_mine(context: Any) -> list[Any]:
    return [context if isinstance(context, str) else "not mine"]


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    [
        (none, None, []),
        (one, 7, [7]),
        (one, "x", ["x"]),
        (one, [7], [7]),
        (one, {"value": 7}, [7]),
        (one, {"other": 7}, [{"other": 7}]),
        (two, [1, 2], [1, 2]),
        (two, {"a": 1}, [1, "b"]),
        (two, {"b": 1, "a": 2}, [2, 1]),
        (many, [1, 2], [[1, 2], {}]),
        (many, {"x": 1}, [[], {"x": 1}]),
        (context_first, None, ["run-1", None]),
        (context_first, [5], ["run-1", 5]),
        (context_first, {"a": 5}, ["run-1", 5]),
        (context_first, 5, ["run-1", 5]),
        (context_last, [5], ["run-1", 5]),
        (context_last, {"a": 5}, ["run-1", 5]),
        (context_is_mine, {"context": "mine"}, ["mine"]),
        (functools.partial(two, 1), {"b": 2}, [1, 2]),
    ],
)
def test_inputs_become_arguments(function: Callable[..., Any], inputs: Any, expected: Any) -> None:
    assert run_task(function, inputs) == Finished(expected)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [(none, 7), (none, {"a": 1}), (one, [1, 2]), (one, None)],
)
def test_inputs_that_do_not_fit_are_refused_with_the_task_named(function: Callable[..., Any], inputs: Any) -> None:
    outcome = run_task(function, inputs)
    assert isinstance(outcome, Refused)
    assert outcome.error.startswith("the input does not fit the task it: ")


def test_a_task_takes_inputs_of_every_shape_one_after_the_other() -> None:
    context = context_of(request_for(ActionKind.PYTHON))
    shapes: list[Any] = [None, 5, "x", [], [5], [5, 6], {}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"context": "mine"}]
    for function in (none, one, two, many, context_first, context_last, context_is_mine):
        known = Task("known", function)
        for inputs in shapes * 2:
            assert _bound(known, inputs, context) == _bound(Task("new", function), inputs, context)


def _bound(task: Task, inputs: Any, context: RunContext) -> Any:
    try:
        return task.bind(inputs, context)
    except TypeError as wrong:
        return str(wrong)


def test_inputs_with_ever_new_names_fill_no_memory() -> None:
    task = Task("many", many)
    for n in range(1_000):
        assert task.bind({f"name-{n}": n}) == ((), {f"name-{n}": n})
    task.bind({f"name-{n}": n for n in range(1_000)})
    assert sum(len(shape) for shape in task._ways if isinstance(shape, tuple)) <= 64 * 100


def test_a_task_may_change_its_inputs_and_the_request_stays_as_it_was() -> None:
    def change(value: dict[str, Any]) -> int:
        value["a"].append(1)
        return len(value["a"])

    inputs = {"value": {"a": []}}
    assert run_task(change, inputs) == Finished(1)
    assert inputs == {"value": {"a": []}}


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
    limit = time.monotonic() + 5
    while active_children() and time.monotonic() < limit:
        time.sleep(0.01)
    assert active_children() == []


def test_closing_kills_the_processes() -> None:
    async def run() -> tuple[Outcome, float]:
        launcher = PythonLauncher(far_ends.tasks(), FixedClock())
        launch = asyncio.ensure_future(
            launcher.launch(request_for(ActionKind.PYTHON, {"callable": "cpu_sleep_long"}, seconds=50))
        )
        await asyncio.sleep(0.3)
        begun = time.monotonic()
        await launcher.close()
        return await launch, time.monotonic() - begun

    outcome, took = asyncio.run(run())
    assert isinstance(outcome, RunFailed)
    assert took < far_ends.FOR_EVER


def test_abandoned_threads_are_counted_and_bounded_and_forgotten_when_they_end() -> None:
    release = threading.Event()

    async def run() -> list[Any]:
        tasks = TaskRegistry()
        tasks.add(lambda: release.wait(far_ends.FOR_EVER), name="deaf")
        launcher = PythonLauncher(tasks, FixedClock(), concurrency=1, grace_seconds=0.1)
        first = await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "deaf"}, seconds=0.1))
        found: list[Any] = [first, launcher.abandoned]
        found.append(await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "deaf"}, seconds=0.1)))
        release.set()
        while launcher.abandoned:
            await asyncio.sleep(0.001)
        found.append(await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "deaf"})))
        return found

    first, abandoned, second, later = asyncio.run(run())
    assert isinstance(first, RunTimedOut)
    assert "goes on unseen" in first.error
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
        stuck = await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "stuck"}, seconds=0.05))
        found: list[Any] = []
        for _ in range(20):
            found.append(await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "who"})))
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
            found.append(await launcher.launch(request_for(ActionKind.PYTHON, {"callable": "look"})))
        return found

    assert asyncio.run(run()) == [Finished("here"), Finished("there")]


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_a_system_without_threads_has_started_nothing(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    assert run_task(none, cpu=cpu) == Unreachable("no thread for the call: can't start new thread")


def test_a_thread_that_listens_is_not_abandoned() -> None:
    async def run() -> tuple[Outcome, int]:
        launcher = PythonLauncher(far_ends.tasks(), FixedClock())
        cancelled = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, cancelled.set)
        request = request_for(ActionKind.PYTHON, {"callable": "sleep_listening"}, cancelled=cancelled)
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
        return await launcher.launch(request_for(ActionKind.WORKFLOW, {"workflow_type": "echo"}, inputs=[1]))

    assert asyncio.run(run()) == Finished({"inputs": 1})


def test_an_unknown_task_is_refused_with_those_that_are_known() -> None:
    async def run() -> Outcome:
        return await PythonLauncher(far_ends.tasks(), FixedClock()).launch(
            request_for(ActionKind.PYTHON, {"callable": "nope"})
        )

    outcome = asyncio.run(run())
    assert isinstance(outcome, Refused)
    assert "'nope'; registered: big, big_async" in outcome.error


# The registry of tasks


def test_a_task_is_named_after_its_function_and_registered_once() -> None:
    tasks = TaskRegistry()
    name = tasks.add(far_ends.echo).name
    assert name == "launchers.far_ends.echo"
    tasks.add(far_ends.echo)
    assert list(tasks) == [name]
    assert name in tasks
    assert len(tasks) == 1
    with pytest.raises(ValueError, match="is registered already"):
        tasks.add(far_ends.big, name=name)


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    tasks = TaskRegistry()

    @tasks.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8
    assert tasks.get("double") == Task("double", double)


@pytest.mark.parametrize("name", ["", "n" * 256])
def test_a_task_needs_a_usable_name(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 255"):
        Task(name, far_ends.echo)


def test_what_cannot_be_called_is_no_task() -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        Task("x", 7)  # type: ignore[arg-type]


def test_an_async_computation_is_refused_when_it_is_registered() -> None:
    with pytest.raises(ValueError, match="is async"):
        Task("x", far_ends.echo_async, cpu=True)


def test_an_object_with_an_async_call_is_async() -> None:
    class Caller:
        async def __call__(self) -> int:
            return 7

    assert run_task(Caller()) == Finished(7)


def test_a_builtin_without_a_signature_is_called_as_it_comes() -> None:
    assert run_task(max, [3, 9, 4]) == Finished(9)


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_the_context_says_where_and_by_what_right_the_attempt_may_report(cpu: bool) -> None:
    told = {"attempt": 2, "report_url": "https://h.example/r", "report_token": "rt.secret"}
    assert run_task(far_ends.reports, cpu=cpu, **told) == Finished([2, "https://h.example/r", "rt.secret"])
    assert run_task(far_ends.reports, cpu=cpu) == Finished([0, None, None])


def test_a_context_shows_no_token() -> None:
    assert "rt.secret" not in repr(context_of(request_for(ActionKind.PYTHON, report_token="rt.secret")))


def test_a_context_that_nobody_watches_is_never_cancelled() -> None:
    assert context_of(request_for(ActionKind.PYTHON)).cancelled() is False
