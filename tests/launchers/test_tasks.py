"""Which functions can be scheduled, how inputs become their arguments, and what they are told about their run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from launchers import far_ends
from launchers.far_ends import STEP, request_for, run_task

from horarium.core.lifecycle.outcome import Finished, Refused
from horarium.launchers.tasks import Task, TaskRegistry, job_of
from horarium.platform.job import Job


def none() -> list[Any]:
    return []


def one(value: Any) -> list[Any]:
    return [value]


def two(a: Any, b: Any = "b") -> list[Any]:
    return [a, b]


def many(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


def context_first(context: Job, a: Any = None) -> list[Any]:
    return [context.run_id, a]


def context_last(a: Any = None, *, context: Job) -> list[Any]:
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
    context = job_of(request_for("python"), None)
    shapes: list[Any] = [None, 5, "x", [], [5], [5, 6], {}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"context": "mine"}]
    for function in (none, one, two, many, context_first, context_last, context_is_mine):
        known = Task("known", function)
        for inputs in shapes * 2:
            assert _bound(known, inputs, context) == _bound(Task("new", function), inputs, context)


def _bound(task: Task, inputs: Any, context: Job) -> Any:
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

    inputs: dict[str, Any] = {"value": {"a": []}}
    assert run_task(change, inputs) == Finished(1)
    assert inputs == {"value": {"a": []}}


# The registry of tasks


def test_a_task_is_named_after_its_function_and_registered_once() -> None:
    tasks = TaskRegistry()
    name = tasks.add(far_ends.echo).name
    assert name == "launchers.far_ends.echo"
    tasks.add(far_ends.echo)
    assert list(tasks) == [name]
    assert name in tasks
    assert len(tasks) == 1
    with pytest.raises(ValueError, match="is already registered"):
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
    with pytest.raises(TypeError, match="not callable"):
        Task("x", 7)  # type: ignore[arg-type]  # wrong on purpose


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


@pytest.mark.parametrize("cpu", [False, True], ids=["thread", "process"])
def test_the_context_is_the_job_that_a_worker_would_be_given(cpu: bool) -> None:
    times = ["2026-03-08T07:00:00+00:00", "2026-03-08T07:00:02+00:00", "2026-03-08T07:00:20+00:00"]
    assert run_task(far_ends.knows, cpu=cpu) == Finished([*times, None, None, "nightly", "default", 0])


def test_a_context_shows_no_token() -> None:
    assert "rt.secret" not in repr(job_of(request_for("python", report_token="rt.secret"), None))


def test_a_context_that_nobody_watches_is_never_cancelled() -> None:
    assert job_of(request_for("python"), None).cancelled() is False


def test_a_task_is_told_its_step_and_its_terms() -> None:
    job = job_of(request_for("python", **STEP), None)
    assert (job.node_id, job.parent_run_id, job.root_run_id, job.workflow) == ("send", "p", "r", STEP["workflow"])
    assert (job.assignee, job.search_attributes) == (STEP["assignee"], {"tenant": 42})
    assert (job.approval_mode, job.gates, job.limits) == ("on_block", ["publish", "spend"], {"cost": 0.5})
    assert job.approved_gates == ["spend"]
    assert (job.allow_tools, job.global_model_id) == (["search"], "m")
